"""A folder as one archive: the same bytes for the same files, whoever packs them and when.

Names are sorted, times and owners zero, modes kept. Reads the folder; nothing else of the machine
gets into the archive. What cannot travel is refused with its name: a link that leads out of the
folder, a file that cannot be read, more bytes than fit.
"""

import errno
import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from tfadmit_client import fault
from tfadmit_client.submit import ignore

# Beyond it nobody means code, and reading it all would take minutes.
MOST_READ: Final = 200 * 1000 * 1000
MOST_ENTRIES: Final = 50_000
MOST_DEPTH: Final = 100
# Linux takes 4,096 with the folder before it, which is another one in the pod.
MOST_PATH: Final = 3_900
_PERMISSIONS: Final = 0o777
_SHOWN: Final = 5
_SHOWN_OF_PATH: Final = 60


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file, folder or link."""

    path: str
    mode: int
    size: int = 0
    target: str | None = None
    """Where a link leads."""

    is_folder: bool = False

    @property
    def is_executable(self) -> bool:
        """Whether it may be executed."""
        return bool(self.mode & 0o111)


@dataclass(frozen=True, kw_only=True)
class Packed:
    """An archive and what is in it."""

    content: bytes
    entries: Mapping[str, Entry]
    left_out: frozenset[str]
    """What the ignore files have left out; of a folder only its own path."""

    skipped: tuple[str, ...] = ()
    """Sockets and the like, which are no files."""

    interpreters: Mapping[str, str] = field(default_factory=dict)
    """Of files that begin with `#!`, the rest of that line as it is, `\r` included."""

    def largest(self) -> str:
        """Name the largest files, for a refusal."""
        return largest(self.entries.values())


@dataclass
class _Found:
    entries: list[Entry] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    size: int = 0


def pack(folder: str) -> Packed:
    """Pack a folder.

    Raises:
        ClientError: it cannot be packed, and what mends it.
    """
    top = Path(os.path.realpath(folder))
    try:
        is_folder, is_there = top.is_dir(), top.exists()
    except OSError as error:
        raise fault.ClientError(_unreadable(error, "", shown=folder)) from error
    if not is_folder:
        what = "is no folder" if is_there else "there is no such folder"
        raise fault.ClientError(f"--code {folder}: {what}; name the folder that has your program")
    found = _Found()
    rules, base = ignore.of(top)
    _walk(top, "", base, rules, found, shown=folder)
    if found.mistakes:
        raise fault.ClientError("\n".join(found.mistakes))
    if not any(entry.target is not None or entry.size for entry in found.entries):
        raise fault.ClientError(
            f"--code {folder}: there is nothing in it but what {' and '.join(ignore.FILES)} leave "
            f"out; name the folder that has your program, or --code none for one in the image"
        )
    interpreters: dict[str, str] = {}
    return Packed(
        content=_archive(top, found.entries, interpreters),
        entries={entry.path: entry for entry in found.entries},
        left_out=frozenset(found.left_out),
        skipped=tuple(found.skipped),
        interpreters=interpreters,
    )


def largest(entries: Iterable[Entry]) -> str:
    """Name the largest of some entries."""
    files = sorted(entries, key=lambda entry: (-entry.size, entry.path))
    return ", ".join(f"{entry.path} ({amount(entry.size)})" for entry in files[:_SHOWN])


def amount(size: int) -> str:
    """Write a number of bytes for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def _walk(
    top: Path, folder: str, base: str, rules: ignore.Rules, found: _Found, *, shown: str
) -> None:
    """Collect what is in a folder; `folder` ends in a slash, `base` leads to it for the rules."""
    if folder.count("/") > MOST_DEPTH:
        found.mistakes.append(_too_deep(folder, f"{MOST_DEPTH} folders deep", shown=shown))
        return
    try:
        items = sorted(os.scandir(top / folder), key=lambda item: os.fsencode(item.name))
        rules = rules.within(top / folder, base=base)
    except OSError as error:
        found.mistakes.append(_unreadable(error, folder, shown=shown))
        return
    except fault.ClientError as error:
        found.mistakes.append(str(error))
        return
    for item in items:
        path = f"{folder}{item.name}"
        is_folder = item.is_dir(follow_symlinks=False)
        if rules.excludes(f"{base}{item.name}", is_folder=is_folder):
            found.left_out.add(path)
            continue
        if len(os.fsencode(path)) > MOST_PATH:
            found.mistakes.append(_too_deep(path, f"{MOST_PATH:,} bytes long", shown=shown))
            continue
        try:
            _take(item, top, path, found, shown=shown)
        except OSError as error:
            found.mistakes.append(_unreadable(error, path, shown=shown))
            continue
        if is_folder:
            _walk(top, f"{path}/", f"{base}{item.name}/", rules, found, shown=shown)
        _check_room(found, shown=shown)


def _take(item: os.DirEntry[str], top: Path, path: str, found: _Found, *, shown: str) -> None:
    status = item.stat(follow_symlinks=False)
    mode = status.st_mode & _PERMISSIONS
    if stat.S_ISDIR(status.st_mode):
        found.entries.append(Entry(path=path, mode=mode, is_folder=True))
    elif stat.S_ISLNK(status.st_mode):
        _link(top, path, found, shown=shown)
    elif stat.S_ISREG(status.st_mode):
        found.entries.append(Entry(path=path, mode=mode, size=status.st_size))
        found.size += status.st_size
    else:
        found.skipped.append(path)


def _too_deep(path: str, limit: str, *, shown: str) -> str:
    return (
        f"--code {shown}: the path {path[:_SHOWN_OF_PATH]}… is more than {limit}, which is not "
        "code; leave it out by a line in .tfadmitignore"
    )


def _unreadable(error: OSError, path: str, *, shown: str) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return (
            f"--code {shown}: the path {path[:_SHOWN_OF_PATH]}… is too long for this machine where "
            "the folder is now; leave it out by a line in .tfadmitignore, or move the folder up"
        )
    if not path:
        return f"--code {shown}: it cannot be read: {error.strerror}; make it readable (chmod u+rx)"
    return (
        f"--code {shown}: {path} cannot be read: {error.strerror}; leave it out by a line in "
        ".tfadmitignore, or make it readable"
    )


def _check_room(found: _Found, *, shown: str) -> None:
    if found.size <= MOST_READ and len(found.entries) <= MOST_ENTRIES:
        return
    raise fault.ClientError(
        f"--code {shown}: more than {amount(MOST_READ)} or {MOST_ENTRIES:,} files, which is not "
        f"code; the largest so far: {largest(found.entries)}; name your program's folder, "
        "or leave data out by a line in .tfadmitignore and read it with --data"
    )


def _link(top: Path, path: str, found: _Found, *, shown: str) -> None:
    target = os.readlink(top / path)  # noqa: PTH115 - a Path would lose `./` and `//`
    lands = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
    leads_out = os.path.isabs(target) or PurePosixPath(lands).parts[:1] == ("..",)  # noqa: PTH117
    real = Path(os.path.realpath(top / path))
    if leads_out or top not in (real, *real.parents):
        found.mistakes.append(
            f"--code {shown}: the link {path} leads out of the folder, to {target}; copy what is "
            "there, leave it out by a line in .tfadmitignore, or read it with --data"
        )
        return
    found.entries.append(Entry(path=path, mode=_PERMISSIONS, target=target))


def _archive(top: Path, entries: list[Entry], interpreters: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    # Level 9 and a time of 0; the name of the file would be in the header, too.
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=stream, mtime=0) as packed,
        tarfile.open(
            fileobj=packed,
            mode="w",
            format=tarfile.PAX_FORMAT,
            encoding="utf-8",
            errors="surrogateescape",
        ) as archive,
    ):
        for entry in entries:
            content = _add(archive, top, entry)
            if content.startswith(b"#!"):
                interpreters[entry.path] = content[2:].partition(b"\n")[0].decode(errors="replace")
    return stream.getvalue()


def _add(archive: tarfile.TarFile, top: Path, entry: Entry) -> bytes:
    """Add an entry; gives its content."""
    info = tarfile.TarInfo(entry.path)
    info.mode = entry.mode
    if entry.target is not None:
        info.type, info.linkname = tarfile.SYMTYPE, entry.target
        archive.addfile(info)
        return b""
    path = top / entry.path
    try:
        if path.is_dir():
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
            return b""
        content = path.read_bytes()
    except OSError as error:
        raise fault.ClientError(
            f"{path}: cannot be read: {error.strerror}; leave it out by a line in .tfadmitignore, "
            "or make it readable"
        ) from error
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
    return content
