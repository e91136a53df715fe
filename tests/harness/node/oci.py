"""OCI images as archives, written without an engine.

Knows the format (opencontainers/image-spec 1.1, and the annotation by which containerd names what
it imports); does not know what is in the layers.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TYPE = "application/vnd.oci.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an image says about the process that runs in it."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    directory: str = ""
    ports: tuple[str, ...] = ()

    def configuration(self) -> dict[str, Any]:
        """As it stands in an image's configuration."""
        return {
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.command),
            "Env": [f"{name}={value}" for name, value in self.environment.items()],
            "User": self.user,
            "WorkingDir": self.directory,
            "ExposedPorts": {port: {} for port in self.ports},
        }


def write(target: Path, *, name: str, layers: Sequence[Path], settings: Settings) -> None:
    """Write an archive with one image of these uncompressed tar files, the lowest first.

    Uncompressed, because the archive is read once, on the machine that wrote it.
    """
    digests = [_digest(layer) for layer in layers]
    configuration = _json(
        architecture=_ARCHITECTURES[platform.machine()],
        os="linux",
        config=settings.configuration(),
        rootfs={"type": "layers", "diff_ids": digests},
    )
    manifest = _json(
        schemaVersion=2,
        mediaType=f"{_TYPE}.manifest.v1+json",
        config=_descriptor("config.v1+json", configuration),
        layers=[
            {"mediaType": f"{_TYPE}.layer.v1.tar", "digest": digest, "size": layer.stat().st_size}
            for layer, digest in zip(layers, digests, strict=True)
        ],
    )
    named = {
        **_descriptor("manifest.v1+json", manifest),
        "annotations": {"io.containerd.image.name": name},
    }
    with tarfile.open(target, "w") as archive:
        _add(archive, "oci-layout", _json(imageLayoutVersion="1.0.0"))
        _add(archive, "index.json", _json(schemaVersion=2, manifests=[named]))
        for blob in (configuration, manifest):
            _add(archive, _blob(_digest_of(blob)), blob)
        for layer, digest in zip(layers, digests, strict=True):
            archive.add(layer, arcname=_blob(digest), filter=_plain)


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": f"{_TYPE}.{kind}", "digest": _digest_of(content), "size": len(content)}


def _json(**content: Any) -> bytes:
    return json.dumps(content).encode()


def _digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    return entry
