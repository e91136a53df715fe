"""The processes of a local training: started, printed with their name in front, ended together.

When the chief has succeeded, or without one all workers have, the training has; the first task that
fails ends all others. So does a signal, as Ctrl-C.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from tfadmit_client.local.asked import Asked
from tfadmit_client.local.tasks import Task

# The others are usually done at the same moment.
_PATIENCE_SECONDS: Final = 5.0
# As long as a program may take for a last checkpoint; a second signal does not wait.
_GRACE_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05
_ENDLESS: Final = ("ps", "evaluator")

Print = Callable[[Task, str, bool], None]
"""Prints a line of a task; True for one of standard error."""


class Process:
    """One task at work."""

    def __init__(self, task: Task, command: Sequence[str], *, cwd: Path, show: Print) -> None:
        self.task = task
        self._process = subprocess.Popen(  # noqa: S603 - the user's own program, without a shell
            [*command],
            env=dict(task.environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C in the terminal reaches it through us, once
        )
        pipes = ((self._process.stdout, False), (self._process.stderr, True))
        self._readers = [
            threading.Thread(target=self._show, args=(pipe, is_error, show), daemon=True)
            for pipe, is_error in pipes
            if pipe is not None
        ]
        try:
            for reader in self._readers:
                reader.start()
        except RuntimeError as error:  # of a limit, as Python has it
            self.end(signal.SIGKILL)
            self._process.wait()
            raise OSError(str(error)) from error

    @property
    def code(self) -> int | None:
        """Its exit code, as a shell has it; None while it runs."""
        code = self._process.poll()
        return 128 - code if code is not None and code < 0 else code

    def end(self, number: signal.Signals) -> None:
        """Send a signal to the launcher, or, to kill, to all that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL:
                os.killpg(self._process.pid, number)
            elif self.code is None:
                os.kill(self._process.pid, number)

    def close(self) -> None:
        """Leave nothing behind, and wait until all is printed."""
        self.end(signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            reader.join(timeout=_PATIENCE_SECONDS)

    def _show(self, pipe: IO[bytes], is_error: bool, show: Print) -> None:  # noqa: FBT001 - a thread's arguments
        with pipe:
            for line in pipe:
                show(self.task, line.decode("utf-8", errors="replace").rstrip("\n"), is_error)


def run(
    tasks: Iterable[Task], command: Sequence[str], *, cwd: Path, show: Print, asked: Asked
) -> list[Process]:
    """Run all tasks to the end of the training; gives them ended, the first that failed in front.

    Where `asked` has noted a signal, they have been ended for that.

    Raises:
        OSError: a task cannot be started; all others have been ended.
    """
    started: list[Process] = []
    failed: list[Process] = []
    try:
        for task in tasks:
            if asked.times:
                break
            started.append(Process(task, command, cwd=cwd, show=show))
        while not asked.times and not (failed := _failed(started)) and not _succeeded(started):
            time.sleep(_POLL_SECONDS)
        if not failed:
            _wait(started, seconds=_PATIENCE_SECONDS, asked=asked)
    finally:
        _end(started, asked=asked)
    return [*failed, *(item for item in started if item not in failed)]


def succeeded(ended: Sequence[Process]) -> bool:
    """Whether the training succeeded."""
    return all(item.code == 0 for item in _deciding(ended))


def _deciding(started: Sequence[Process]) -> list[Process]:
    chief = [item for item in started if item.task.role == "chief"]
    return chief or [item for item in started if item.task.role not in _ENDLESS]


def _succeeded(started: Sequence[Process]) -> bool:
    return all(item.code == 0 for item in _deciding(started))


def _failed(started: Sequence[Process]) -> list[Process]:
    return [item for item in started if item.code not in (None, 0)]


def _wait(started: Sequence[Process], *, seconds: float, asked: Asked) -> None:
    deadline = time.monotonic() + seconds
    waited_for = [item for item in started if item.task.role not in _ENDLESS]
    while any(item.code is None for item in waited_for) and time.monotonic() < deadline:
        if asked.times:
            return
        time.sleep(_POLL_SECONDS)


def _end(started: Sequence[Process], *, asked: Asked) -> None:
    """Ask all to end, then make them; what is asked for once more does not wait."""
    for item in started:
        item.end(signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while any(item.code is None for item in started) and time.monotonic() < deadline:
        if asked.times > 1:
            break
        time.sleep(_POLL_SECONDS)
    for item in started:
        item.close()


def to_terminal(width: int) -> Print:
    """Give what prints a line with its task in front, standard error to standard error.

    Where it cannot be printed that is told once, and the training goes on: its logs are in files.
    """
    lock = threading.Lock()
    broken: set[bool] = set()

    def show(task: Task, line: str, is_error: bool) -> None:  # noqa: FBT001 - see `Print`
        stream = sys.stderr if is_error else sys.stdout
        with lock:
            if is_error in broken:
                return
            try:
                print(f"{task.name:{width}} | {line}", file=stream, flush=True)
            except OSError as error:
                broken.add(is_error)
                _tell_broken(error, task)

    return show


def _tell_broken(error: OSError, task: Task) -> None:
    if isinstance(error, BrokenPipeError):  # who reads has seen enough, as `head`
        return
    with suppress(OSError):
        print(
            f"the output cannot be printed ({error.strerror}); the tasks go on, and their logs are "
            f"in {task.workspace.parent}/*/output/logs",
            file=sys.stderr,
            flush=True,
        )
