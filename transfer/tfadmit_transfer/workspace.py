"""The tree that a training pod has at `/workspace`, and the files by which its parts talk.

The launcher in the training container writes `ended.json`; `fetch` writes `fetched.json`, `sync`
writes `saved.json`. Pure: paths and their contents, no reading and no writing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

VERSION = 1


@dataclass(frozen=True)
class Workspace:
    """The paths below one root."""

    root: PurePosixPath

    @property
    def model(self) -> PurePosixPath:
        """Where the program writes its model."""
        return self.root / "output" / "model"

    @property
    def checkpoints(self) -> PurePosixPath:
        """Where it writes checkpoints, and finds those of earlier attempts."""
        return self.root / "output" / "checkpoints"

    @property
    def logs(self) -> PurePosixPath:
        """Where its output and its TensorBoard files are."""
        return self.root / "output" / "logs"

    @property
    def control(self) -> PurePosixPath:
        """The folder of the files below."""
        return self.root / ".tfadmit"

    @property
    def fetched(self) -> PurePosixPath:
        """Tells that all data is there."""
        return self.control / "fetched.json"

    @property
    def ended(self) -> PurePosixPath:
        """Tells how the program ended."""
        return self.control / "ended.json"

    @property
    def saved(self) -> PurePosixPath:
        """Tells what came of the last save."""
        return self.control / "saved.json"


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """An input that is there."""

    name: str
    uri: str
    bytes: int
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the program ended."""

    attempt: int
    code: int
    signal: int | None


def fetched_json(items: Sequence[Fetched]) -> bytes:
    """Write the content of `fetched.json`."""
    inputs = [
        {
            "name": item.name,
            "uri": item.uri,
            "bytes": item.bytes,
            **({"sha256": item.sha256} if item.sha256 else {}),
        }
        for item in items
    ]
    return json.dumps({"version": VERSION, "inputs": inputs}).encode()


def saved_json(*, attempt: int, ok: bool, message: str) -> bytes:
    """Write the content of `saved.json`."""
    return json.dumps(
        {"version": VERSION, "attempt": attempt, "ok": ok, "message": message}
    ).encode()


def parse_ended(content: bytes) -> Ended | None:
    """Read `ended.json`; None for what is none."""
    try:
        found = json.loads(content)
        signal = found.get("signal")
        return Ended(
            attempt=int(found.get("attempt", 0)),
            code=int(found["code"]),
            signal=None if signal is None else int(signal),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
