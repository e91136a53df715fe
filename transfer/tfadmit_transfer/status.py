"""`status.json`: what of a job's results is complete. Encoding and decoding, side by side; pure.

Written last, by the one task that saves. Versions only grow; unknown fields are passed by.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfadmit_transfer import fault, handover, layout, manifest

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Status:
    """The state of a job's results."""

    job: str
    run: str = ""
    """The uid of the JobSet or Job: another job of the same name has another."""

    attempt: int = 0
    code: int | None = None
    """The exit code of the program, None while it runs or when it was killed with its launcher."""

    time: str = ""
    """When it was written, RFC 3339."""

    model: manifest.Manifest | None = None
    """The last model of a run that ended well; always whole."""

    partial: manifest.Manifest | None = None
    """What is there of the model of a run that did not end well."""

    checkpoints: manifest.Manifest | None = None


def encode(status: Status) -> bytes:
    """Write it."""
    document: dict[str, Any] = {
        "version": VERSION,
        "job": status.job,
        "run": status.run,
        "attempt": status.attempt,
        "code": status.code,
        "time": status.time,
        "complete": status.model is not None,
    }
    for name in ("model", "partial", "checkpoints"):
        found: manifest.Manifest | None = getattr(status, name)
        document[name] = found and _section(found)
    return json.dumps(document, indent=1).encode()


def decode(content: bytes, *, where: str) -> Status:
    """Read it.

    Raises:
        RefusedError: it is of a later version, or nothing of ours.
    """
    try:
        document = json.loads(content)
        version = document["version"]
        if version != VERSION:
            raise fault.RefusedError(
                f"{where} has version {version!r}, this tfadmit reads version {VERSION}: "
                "use the tfadmit that wrote it, or a newer one"
            )
        code = document.get("code")
        return Status(
            job=str(document["job"]),
            run=str(document.get("run", "")),
            attempt=int(document.get("attempt", 0)),
            code=None if code is None else int(code),
            time=str(document.get("time", "")),
            model=_manifest(document.get("model")),
            partial=_manifest(document.get("partial")),
            checkpoints=_manifest(document.get("checkpoints")),
        )
    except handover.MALFORMED as error:
        raise fault.RefusedError(f"{where} is no status of tfadmit ({error!r})") from error


def _section(found: manifest.Manifest) -> dict[str, Any]:
    files = [
        {"path": item.path, "size": item.size, "sha256": item.sha256, "key": item.key}
        for item in found.entries.values()
    ]
    return {"run": found.run, "attempt": found.attempt, "files": files}


def _manifest(section: Mapping[str, Any] | None) -> manifest.Manifest | None:
    if section is None:
        return None
    entries = [
        manifest.Entry(
            path=_safe(str(item["path"])),
            size=int(item["size"]),
            sha256=str(item["sha256"]),
            key=_safe(str(item["key"])),
        )
        for item in section["files"]
    ]
    return manifest.Manifest(
        run=str(section.get("run", "")),
        attempt=int(section.get("attempt", 0)),
        entries={entry.path: entry for entry in entries},
    )


def _safe(path: str) -> str:
    """Refuse a path that leads out of its folder: whoever can write the bucket wrote it."""
    if {"", ".", ".."} & set(path.split("/")) or "\0" in path:
        raise ValueError(f"the path {path!r} leads elsewhere, in {layout.STATUS}")
    return path
