"""Signals that ask a local training to end, noted for the loop that waits for its tasks.

A handler only notes: an exception in the midst of starting a task would leave that task behind with
nobody to end it. What is done about a signal is `processes`.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Final

# Ctrl-C, `kill` or a scheduler, a terminal that is closed.
_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_NUMBERS: Final = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


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
    """Note signals, where Python hears them: in its first thread."""
    asked = Asked()
    is_first = threading.current_thread() is threading.main_thread()
    heard = [item for item in _NUMBERS if signal.getsignal(item) != signal.SIG_IGN]  # nohup stays
    before = {number: signal.signal(number, asked.note) for number in heard if is_first}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
