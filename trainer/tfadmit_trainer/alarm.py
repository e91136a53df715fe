"""The last resort while TensorFlow holds Python's lock: the kernel's timer ends the process.

No thread and no handler written in Python runs then, and process 1 of a container cannot be killed
from inside. So the C library's own `_exit` becomes the handler of SIGALRM: it is called with the
number of the signal, which is then the exit code. I/O: the process' timer and one handler.
"""

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tfadmit_trainer import voice


@contextmanager
def ending_after(seconds: float, *, what: str) -> Iterator[None]:
    """End the process, with exit code 14 (SIGALRM), when the block takes longer.

    Outside of the main thread and of Linux nothing is done.
    """
    if not sys.platform.startswith("linux") or not _is_free():
        yield
        return
    library = ctypes.CDLL(None)
    library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.signal.restype = ctypes.c_void_p
    leave = ctypes.cast(library._exit, ctypes.c_void_p)  # noqa: SLF001 - the name in C
    voice.say(f"{what}; exit code {int(signal.SIGALRM)} if that takes over {seconds:.0f} s")
    before = library.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        library.signal(signal.SIGALRM, before)


def _is_free() -> bool:
    """Whether nobody else uses the timer."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getitimer(signal.ITIMER_REAL)[0] == 0
