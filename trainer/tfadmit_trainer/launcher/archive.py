"""The code archive: checked by its hash, then unpacked as it was packed.

Files come out byte by byte, with their modes, whatever the umask is. The archive is the user's own,
and its hash stands in the TrainJob; names that lead out of the folder are refused all the same.
"""

import hashlib
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final

from tfadmit_trainer.launcher.fault import LaunchError

_CHUNK: Final = 1 << 20
# What `stat` gives beyond it (setuid and the like) has no business in a user's code.
_PERMISSIONS: Final = 0o777


def unpack(archive: Path, *, sha256: str, into: Path) -> None:
    """Unpack an archive with this hash; an earlier attempt's files of the same name are replaced.

    Raises:
        LaunchError: it is missing, is another one, or cannot be unpacked.
    """
    try:
        actual = _digest(archive)
    except OSError as error:
        raise LaunchError(
            f"the code is not at {archive} ({error.strerror}): is the ConfigMap of `tfadmit run` "
            "there, and mounted?"
        ) from error
    if sha256 and actual != sha256:
        raise LaunchError(
            f"{archive} has SHA-256 {actual}, the TrainJob says {sha256}: the ConfigMap is not the "
            "one of this job; submit it again"
        )
    try:
        _unpack(archive, into)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise LaunchError(f"{archive} cannot be unpacked to {into}: {error}") from error


def _digest(archive: Path) -> str:
    found = hashlib.sha256()
    with archive.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _unpack(archive: Path, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    folders: list[tuple[Path, int]] = []
    with tarfile.open(archive, mode="r:gz", encoding="utf-8", errors="surrogateescape") as opened:
        for member in opened:
            target = into / _inside(member.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                target.chmod(0o700)  # until all is in it, also where an earlier attempt was before
                folders.append((target, member.mode & _PERMISSIONS))
            elif member.issym():
                _replace(target)
                target.symlink_to(member.linkname)
            elif member.isreg():
                _replace(target)
                _write(opened, member, target)
            else:
                raise LaunchError(f"{archive}: {member.name} is neither file, folder nor link")
    # Last, and the innermost first: a folder may not be writable.
    for folder, mode in reversed(folders):
        folder.chmod(mode)


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise LaunchError(f"the code archive names {name!r}, which leads out of its folder")
    return path


def _replace(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or target.exists():
        target.unlink()


def _write(opened: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = opened.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    with content, target.open("wb") as stream:
        while chunk := content.read(_CHUNK):
            stream.write(chunk)
        os.fchmod(stream.fileno(), member.mode & _PERMISSIONS)
