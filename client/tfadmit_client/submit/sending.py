"""How far an upload is, drawn on one line while it lasts.

The bytes are counted when they have arrived, in parts; between two parts the time goes on, so that
a slow line does not look like a dead one.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator

from tfadmit_transfer import progress

_EVERY_SECONDS = 0.5


@contextlib.contextmanager
def shown(
    what: str,
    *,
    total: int,
    bar: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    every: float = _EVERY_SECONDS,
) -> Iterator[Callable[[int], None]]:
    """Draw until the upload ends; gives what is to be told how many bytes have arrived."""
    started = clock()
    meter = progress.Meter(what=what, total=total, say=bar, clock=clock, every=math.inf)
    ended = threading.Event()

    def draw() -> None:
        while not ended.wait(every):
            on_the_way = f"{what}: {progress.size(total)} on the way"
            elapsed = progress.duration(clock() - started)
            bar(meter.line() if meter.done else f"{on_the_way}, {elapsed}")

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield lambda arrived: meter.add(arrived - meter.done)
    finally:
        ended.set()
        drawing.join()
        bar("")
