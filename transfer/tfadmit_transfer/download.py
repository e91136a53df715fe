"""From a source to a file: resumed where it broke off, checked, and there only when it is whole."""

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfadmit_transfer import fault, local, progress, retry, source


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is known beforehand about a file; None and empty are not known."""

    size: int | None = None
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Got:
    """A file that is there."""

    size: int
    sha256: str


def file(
    origin: source.Source,
    target: Path,
    *,
    wanted: Wanted,
    patience: retry.Patience,
    meter: progress.Meter,
) -> Got:
    """Bring a file here; one that is there already and right stays.

    The bytes so far lie in `.NAME.part` beside it, with their version in `.NAME.version`; a later
    call goes on from there.

    Raises:
        TransferError: it cannot be had, or is not what was wanted.
    """
    if there := _there(target, wanted):
        meter.skip(there.size)
        return there
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _Partial(target)
    return retry.run(
        lambda: _once(origin, partial, target, wanted=wanted, meter=meter),
        patience=patience,
        progress=partial.size,
    )


class _Partial:
    """The bytes of a file that have arrived."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.part")
        self._version = target.with_name(f".{target.name}.version")

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def version(self) -> str:
        return (local.read(self._version) or b"").decode(errors="replace")

    def begin(self, version: str) -> None:
        # The older version goes before its bytes do: a kill in between must not join two.
        self._version.unlink(missing_ok=True)
        self.path.write_bytes(b"")
        self._version.write_bytes(version.encode())

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def become(self, target: Path) -> None:
        self.path.replace(target)
        self._version.unlink(missing_ok=True)


def _once(
    origin: source.Source,
    partial: _Partial,
    target: Path,
    *,
    wanted: Wanted,
    meter: progress.Meter,
) -> Got:
    version = partial.version()
    # The last byte once more: all may be there, and no server serves a range beyond the end.
    offset = max(partial.size() - 1, 0) if version else 0
    stream = origin.open(offset=offset, version=version)
    digest = hashlib.sha256()
    if stream.offset:
        _hash(partial.path, digest.update, limit=stream.offset)
    else:
        partial.begin(stream.version)
    size = stream.offset
    with partial.path.open("r+b") as file:
        file.truncate(stream.offset)
        file.seek(stream.offset)
        for chunk in stream.chunks:
            file.write(chunk)
            # The next try counts on what is in the file.
            file.flush()
            digest.update(chunk)
            size += len(chunk)
            meter.add(len(chunk))
    got = Got(size=size, sha256=digest.hexdigest())
    _check(origin, got, stream=stream, wanted=wanted, partial=partial)
    partial.become(target)
    return got


def _check(
    origin: source.Source,
    got: Got,
    *,
    stream: source.Stream,
    wanted: Wanted,
    partial: _Partial,
) -> None:
    if stream.size is not None and got.size < stream.size:
        raise fault.PassingError(
            f"{origin.name}: the connection broke after {progress.size(got.size)} of "
            f"{progress.size(stream.size)}"
        )
    if wanted.sha256 and got.sha256 != wanted.sha256:
        words = f"{origin.name}: its sha256 is {got.sha256}, expected {wanted.sha256}"
    elif wanted.size is not None and got.size != wanted.size:
        words = f"{origin.name}: it has {got.size:,} bytes, expected {wanted.size:,}"
    else:
        return
    partial.drop()
    # Put together of two halves it may have become wrong here; in one piece it is wrong there.
    raise fault.PassingError(words) if stream.offset else fault.DamagedError(words)


def _there(target: Path, wanted: Wanted) -> Got | None:
    """Find a file that was brought earlier: it only ever got its name when it was whole."""
    with contextlib.suppress(FileNotFoundError):
        size = target.stat().st_size
        if wanted.size is None and not wanted.sha256:
            return None
        if wanted.size not in (None, size):
            return None
        found = local.sha256(target)
        if wanted.sha256 in ("", found):
            return Got(size=size, sha256=found)
    return None


def _hash(path: Path, update: Callable[[bytes], None], *, limit: int) -> None:
    left = limit
    with path.open("rb") as file:
        while left and (chunk := file.read(min(local.CHUNK, left))):
            update(chunk)
            left -= len(chunk)
