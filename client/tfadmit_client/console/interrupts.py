"""Signals that end a command, as Ctrl-C does: what has been begun is finished or taken back.

Python itself makes an exception of SIGINT only; SIGTERM, of a scheduler or a CI run that is
cancelled, and SIGHUP, of a terminal that is closed, would end it between two objects.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

Handler = Callable[[int, FrameType | None], None]


def known(*names: str) -> tuple[int, ...]:
    """Give the numbers of signals: not every system of a user has all of them."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


_ENDING: Final = known("SIGTERM", "SIGHUP")


@contextlib.contextmanager
def handled(numbers: Sequence[int], handler: Handler) -> Iterator[None]:
    """Let a handler hear signals, where Python hears them: in its first thread."""
    is_first = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in numbers if is_first}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt for the signals that end a command."""
    heard = [item for item in _ENDING if signal.getsignal(item) == signal.SIG_DFL]  # nohup stays
    with handled(heard, _interrupt):
        yield


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
