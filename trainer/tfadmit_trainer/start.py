"""What every task does before TensorFlow starts: find the others by name, meet them.

A fault ends the process with its sentence and a code after which all tasks start again.
"""

import importlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from tfadmit_trainer import barrier, exits, fault, ports, rendezvous
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.fault import SetupError
from tfadmit_trainer.options import BARRIER_TIMEOUT_ENV

# An image of 9 GB (NVIDIA's) at 10 MB/s takes a new node 15 minutes, in which its pod's name
# resolves already.
START_SECONDS: Final = 900.0
# Seconds until a start without all tasks is given up. A user may set it.
START_ENV: Final = "TFADMIT_START_TIMEOUT"


def seconds(
    environ: Mapping[str, str], *, name: str = START_ENV, default: float = START_SECONDS
) -> float:
    """Read a deadline that the user may have set.

    Raises:
        SetupError: it is no number of seconds.
    """
    stated = environ.get(name, "")
    try:
        return float(stated) if stated else default
    except ValueError as error:
        raise SetupError(f"{name}={stated!r} is no number of seconds") from error


def together(context: TaskContext, *, deadline: float | None = None) -> None:
    """Wait until all names resolve and all tasks are there; end the process when they are not."""
    names = seconds(os.environ, name=BARRIER_TIMEOUT_ENV, default=barrier.TIMEOUT_SECONDS)
    limit = seconds(os.environ) if deadline is None else deadline
    try:
        with _ending_on_sigterm(context):
            barrier.wait(context, timeout=names)
            ports.require(context)
            # The longest part of a start, which would else come between the meeting and
            # TensorFlow's own start.
            importlib.import_module("tensorflow")
            if not context.cluster.size("ps"):
                rendezvous.meet(context, deadline=limit)
            elif context.role == "chief":
                # Its servers start at once and wait for nobody, so that a chief may as well be a
                # program without this library. TensorFlow would wait for them without a word.
                barrier.wait(context, timeout=limit, connect=True)
    except fault.StartError as error:
        exits.leave(error.exit_code, str(error))


@contextmanager
def _ending_on_sigterm(context: TaskContext) -> Iterator[None]:
    """End on SIGTERM while waiting; Linux ignores it for process 1, which a training often is."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        exits.leave(
            exits.TERMINATED,
            f"{context.role} {context.index} was asked to end (SIGTERM) while it waited for others",
        )

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
