"""Trying again: with growing waits, as long as there was progress not too long ago.

Time and sleeping are passed in. Which failures may pass is said by their class, in `fault`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tfadmit_transfer import fault, rhythm

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to try, and how to wait."""

    # A store that restarts is back within minutes; who waits longer holds GPUs for nothing.
    limit: float = 300.0
    """Seconds without any progress after which it gives up."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = print


def run(
    action: Callable[[], T], *, patience: Patience, progress: Callable[[], int] = lambda: 0
) -> T:
    """Do something until it works, or until there was no progress for too long.

    `progress` counts what does not have to be done again, such as bytes that have arrived.

    Raises:
        TransferError: what the last try came to.
    """
    waits = rhythm.waits()
    seen, since = progress(), patience.clock()
    while True:
        try:
            return action()
        except fault.PassingError as error:  # noqa: PERF203 - that is what the loop is for
            if progress() > seen:
                waits, seen, since = rhythm.waits(), progress(), patience.clock()
            wait = next(waits)
            if patience.clock() + wait - since > patience.limit:
                raise
            patience.say(f"{error}; trying again in {wait:g} s")
            patience.sleep(wait)
