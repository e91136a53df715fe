"""Many files from sources to their places, several at a time, with what is said about it."""

import concurrent.futures
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfadmit_transfer import download, progress, retry, source

# Files at a time. Of many small ones each waits for an answer and for little else; of large ones
# each holds a few MiB in memory.
_THREADS = 16


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A file to bring, and where it goes."""

    origin: source.Source
    target: Path
    wanted: download.Wanted


def bring(
    pieces: Sequence[Piece],
    *,
    what: str,
    patience: retry.Patience,
    bar: Callable[[str], None] | None = None,
) -> list[download.Got]:
    """Bring files and tell of it; the first fault ends it.

    `bar` is told every half second how far it is, where somebody looks on; else the log is told
    every ten.

    Raises:
        TransferError: one of them cannot be had.
    """
    sizes = [piece.wanted.size for piece in pieces]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    name = f"{what}: {progress.count(len(pieces), 'file')}"
    amount = f", {progress.size(total)}" if total is not None else ""
    patience.say(f"fetching {name}{amount}, from {pieces[0].origin.name}")
    meter = progress.Meter(
        what=what,
        total=total,
        say=bar or patience.say,
        clock=patience.clock,
        every=0.5 if bar else 10.0,
    )
    got = _all(pieces, meter=meter, patience=patience)
    patience.say(f"fetched {meter.end()}")
    return got


def _all(
    pieces: Sequence[Piece], *, meter: progress.Meter, patience: retry.Patience
) -> list[download.Got]:
    def one(piece: Piece) -> download.Got:
        return download.file(
            piece.origin, piece.target, wanted=piece.wanted, patience=patience, meter=meter
        )

    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        waiting = [pool.submit(one, piece) for piece in pieces]
        try:
            return [future.result() for future in waiting]
        except BaseException:  # an interrupt, too: nobody waits for the other files then
            meter.stop()
            for future in waiting:
                future.cancel()
            raise
