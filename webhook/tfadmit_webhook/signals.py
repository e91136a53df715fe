"""SIGTERM and SIGINT from the first moment on: none is lost, none ends in a traceback.

Loading the server takes a second, and a pod may be deleted in it. What comes before anybody listens
is kept. Standard library only, so that this is in place before anything heavy is imported; what a
signal means is decided by the listener.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# The exit code of a process that a second Ctrl-C ended, as a shell reports it.
INTERRUPTED = 130
_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """The signals that have come, in order."""

    def __init__(self) -> None:
        self._listener: Callable[[signal.Signals], None] | None = None
        self._early: list[signal.Signals] = []

    @property
    def came(self) -> bool:
        """Whether one came that no listener has seen."""
        return bool(self._early)

    def listen(self, listener: Callable[[signal.Signals], None]) -> None:
        """Hand over what came and what will come; the listener is called in the main thread.

        It interrupts whatever runs there, so it may only pass the word on.
        """
        self._listener = listener
        early, self._early = self._early, []
        for number in early:
            listener(number)

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        """Take note of one signal."""
        came = signal.Signals(number)
        if self._listener:
            self._listener(came)
        else:
            self._early.append(came)


@contextmanager
def caught() -> Iterator[Signals]:
    """Catch both signals as long as the context lasts; in the main thread only."""
    signals = Signals()
    before = {number: signal.signal(number, signals.take) for number in _NUMBERS}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
