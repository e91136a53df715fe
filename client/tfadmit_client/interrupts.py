"""Signals that end a command, as Ctrl-C does: what has been begun is finished or taken back.

Python itself makes an exception of SIGINT only; SIGTERM, of a scheduler or a CI run that is
cancelled, and SIGHUP, of a terminal that is closed, would end it between two objects.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

# By name: not every system of a user has all of them.
_NAMES: Final = ("SIGTERM", "SIGHUP")
_NUMBERS: Final = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


@contextlib.contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt for them, where Python hears signals: in its first thread."""
    is_first = threading.current_thread() is threading.main_thread()
    heard = [item for item in _NUMBERS if signal.getsignal(item) == signal.SIG_DFL]  # nohup stays
    before = {number: signal.signal(number, _interrupt) for number in heard if is_first}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
