"""Files of this machine: looked at, read with their checksum, written whole or not at all."""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import BinaryIO

from tfadmit_transfer import fault, manifest

CHUNK = 1024 * 1024
# A block of all common file systems.
_RESERVED = 4096
# What a name is refused with that is a file here and a folder there, or too long.
_NEVER = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG)


def scan(root: Path) -> list[manifest.File]:
    """Give the files below a folder, sorted by path; a folder that is not there has none.

    Files that vanish meanwhile are passed by: programs rename what they have written.
    """
    return sorted(_files(root), key=lambda file: file.path)


def look(root: Path, path: str) -> manifest.File | None:
    """Give one file as it is now."""
    try:
        found = (root / path).stat()
    except FileNotFoundError:
        return None
    return manifest.File(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns)


class Reading:
    """Reads a file once, as long as it was when it was looked at, and knows what it has read."""

    def __init__(self, root: Path, file: manifest.File) -> None:
        self._path = root / file.path
        self._root = root
        self._file = file
        self._digest = hashlib.sha256()
        self.read = 0

    def __iter__(self) -> Iterator[bytes]:
        """Give the bytes; a file that has become shorter ends early."""
        self._digest, self.read = hashlib.sha256(), 0
        with _opened(self._path) as stream:
            while chunk := stream.read(min(CHUNK, self._file.size - self.read)):
                self.read += len(chunk)
                self._digest.update(chunk)
                yield chunk

    @property
    def sha256(self) -> str:
        """The checksum of what was read."""
        return self._digest.hexdigest()

    @property
    def settled(self) -> bool:
        """Whether the file is still as it was when it was looked at."""
        whole = self.read == self._file.size
        return whole and look(self._root, self._file.path) == self._file


def sha256(path: Path) -> str:
    """Give the checksum of a file."""
    digest = hashlib.sha256()
    with _opened(path) as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def inside(path: str) -> PurePosixPath:
    """Give a path out of a store as one below a folder.

    Raises:
        RefusedError: it would lead out of that.
    """
    parts = tuple(path.split("/"))
    # As this machine sees them, too: in Windows there are more ways to lead out of a folder.
    if {"", ".", ".."} & {*parts} or PurePath(path).parts != parts or "\0" in path:
        raise fault.RefusedError(f"{path!r} is no path of a file on this machine")
    return PurePosixPath(path)


def reserve(path: Path) -> None:
    """Take the room of a small file now, so that it can be written when the volume is full."""
    with contextlib.suppress(OSError):
        partial = _partial(path)
        # What is taken already must not be given away.
        if not partial.exists() or partial.stat().st_size < _RESERVED:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(b" " * _RESERVED)


def write(path: Path, content: bytes) -> None:
    """Write a small file: whoever looks sees the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(path)
    # Over what is reserved: to shorten that first would give the room away.
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as stream:
        stream.write(content)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def read(path: Path) -> bytes | None:
    """Give a small file, None when it is not there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class Written:
    """A small file, told apart from another one with the same content."""

    content: bytes
    inode: int
    mtime_ns: int


def written(path: Path) -> Written | None:
    """Give a small file, None when it is not there.

    A program that was started again in its pod may well end as it did before.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            return Written(file.read(), found.st_ino, found.st_mtime_ns)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn what the file system refuses into a sentence.

    Raises:
        RefusedError: rights or a full volume.
        PassingError: anything else.
    """
    try:
        yield
    except OSError as error:
        where = f"{error.filename or 'the workspace'}: {error.strerror or error}"
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise fault.RefusedError(
                f"{where}, as user {os.getuid()}: give the pod a securityContext.fsGroup, or the "
                "volume rights for this user"
            ) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise fault.RefusedError(
                f"{where}: the volume of the workspace is too small for the data"
            ) from error
        if error.errno in _NEVER:
            raise fault.RefusedError(
                f"{where}: this name cannot be had here: in a store one name can be a file and a "
                "folder, and a part of it longer than 255 bytes"
            ) from error
        raise fault.PassingError(where) from error


def _files(root: Path) -> Iterator[manifest.File]:
    # A list and no recursion: a path has room for more folders than Python has for calls.
    folders = [root]
    while folders:
        for entry in _entries(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif found := _regular(entry):
                yield manifest.File(
                    path=Path(entry.path).relative_to(root).as_posix(),
                    size=found.st_size,
                    mtime_ns=found.st_mtime_ns,
                )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise _unreadable(folder) from error


def _regular(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        found = entry.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link to itself leads to no file
            return None
        raise
    return found if stat.S_ISREG(found.st_mode) else None


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except PermissionError as error:
        raise _unreadable(path) from error
    except FileNotFoundError as error:
        raise fault.PassingError(f"{path}: it has gone while it was read") from error


def _unreadable(path: Path) -> fault.RefusedError:
    return fault.RefusedError(
        f"{path}: may not be read by user {os.getuid()}: let the program write files that others "
        "can read (umask 022), or give the pod a securityContext.runAsUser"
    )
