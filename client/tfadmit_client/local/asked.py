"""Signals that ask a local training to end, noted for the loop that waits for its tasks.

A handler only notes: an exception in the midst of starting a task would leave that task behind with
nobody to end it. What is done about a signal is `processes`.
"""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Final

from tfadmit_client.console import interrupts

# Ctrl-C, `kill` or a scheduler, a terminal that is closed.
_NUMBERS: Final = interrupts.known("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(kw_only=True)
class Asked:
    """What came so far."""

    number: int | None = None
    """The first signal; None while there was none."""

    times: int = 0
    """How many came."""

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Be the handler of a signal."""
        self.number = self.number or number
        self.times += 1


@contextlib.contextmanager
def noted() -> Iterator[Asked]:
    """Note signals while the context lasts."""
    asked = Asked()
    heard = [item for item in _NUMBERS if signal.getsignal(item) != signal.SIG_IGN]  # nohup stays
    with interrupts.handled(heard, asked.note):
        yield asked
