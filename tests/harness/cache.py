"""Where built things are kept between runs, and the guarantee that two runs do not build twice.

Knows directories, locks and atomic renames; does not know what is built.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]

_LOCK = ".lock"


def to_stderr(line: str) -> None:
    """Tell a waiting user what takes so long."""
    print(f"tfadmit tests: {line}", file=sys.stderr, flush=True)


def directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The cache directory: ``TFADMIT_CACHE``, else the user's cache as the XDG standard has it."""
    if stated := environ.get("TFADMIT_CACHE"):
        return Path(stated).expanduser().absolute()
    if xdg := environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "tfadmit"
    return Path.home() / ".cache" / "tfadmit"


def key(*, files: Iterable[Path], also: Iterable[str] = ()) -> str:
    """A short name for exactly this content: another byte or another flag gives another name."""
    digest = hashlib.sha256()
    for part in [*(file.read_bytes() for file in files), *(text.encode() for text in also)]:
        # With its length before it, no part can run into the next one.
        digest.update(f"{len(part)}:".encode() + part)
    return digest.hexdigest()[:16]


@contextmanager
def lock(entry: Path, *, say: Say) -> Iterator[None]:
    """Hold the entry for this process; the lock ends with the process, however it ends."""
    entry.mkdir(parents=True, exist_ok=True)
    with (entry / _LOCK).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is filling {entry}; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def created(target: Path) -> Iterator[Path]:
    """Yield a temporary name to fill; it becomes ``target`` at once and only on success.

    The name is fixed because the lock's holder is the only writer, so leftovers of a killed run
    are found and removed.
    """
    partial = target.with_name(f".{target.name}.partial")
    _remove(partial)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        partial.replace(target)
    finally:
        _remove(partial)


def used(entry: Path) -> Path:
    """Note that an entry is in use, so that ``forget`` leaves it; give it back."""
    (entry / _LOCK).touch()
    return entry


def forget(folder: Path, *, unused_days: float, now: float, most: int | None = None) -> list[str]:
    """Remove the entries of a folder that nobody used for so long, and all but the ``most`` last.

    Gives their names.
    """
    gone = []
    last_used = sorted(folder.glob(f"*/{_LOCK}"), key=lambda file: -file.stat().st_mtime)
    for place, file in enumerate(last_used):
        with file.open() as handle:
            is_old = now - file.stat().st_mtime >= unused_days * 86_400
            if not is_old and (most is None or place < most):
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(file.parent)
            gone.append(file.parent.name)
    return sorted(gone)


def made(place: Path, name: str, *, make: Callable[[Path], None], say: Say) -> Path:
    """The part of an entry, made under its lock when it is not there.

    ``make`` is given the path and creates it as ``created`` does: whole, or not at all.
    """
    found = place / name
    if not found.exists():
        with lock(place, say=say):
            # Asked again under the lock: the run that held it before may have made it.
            if not found.exists():
                make(found)
    return found


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
