"""The program as a child process: started, spoken for, and waited for.

The child is a fork of this process that goes through `tfadmit_trainer.run` and then *becomes* the
program, so there is one start order for programs with and without a launcher. As process 1 of a
container this one gets the signals of Kubernetes and collects orphans.
"""

import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final, NoReturn

from tfadmit_trainer import fault, run
from tfadmit_trainer.launcher import tee
from tfadmit_trainer.launcher.handover import Ended

# What Kubernetes, a terminal or an operator sends. SIGWINCH and job control mean the terminal.
_FORWARDED: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
# How long something that the program has left behind may hold its output open.
_DRAIN_SECONDS: Final = 2.0
# After so long an unfinished line is shown as it is.
_IDLE_SECONDS: Final = 1.0
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the program ended, and the end of what it printed."""

    ended: Ended
    errors: bytes
    output: bytes


def execute(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | None, log: tee.Log
) -> Outcome:
    """Run a program to its end."""
    numbers = {getattr(signal, name) for name in _FORWARDED}
    # Blocked until there is somebody to forward to, and until the child has let go of our handlers.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    output, errors = os.pipe(), os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pid = os.fork()
    if pid == 0:
        _in_child(command, env=env, cwd=cwd, pipes=(output, errors), mask=before)
    os.close(output[1])
    os.close(errors[1])
    streams = (
        tee.Stream(source=output[0], target=1, log=log),
        tee.Stream(source=errors[0], target=2, log=log),
    )
    ended = _Waiting(pid, streams).run(numbers, mask=before)
    return Outcome(ended=ended, output=streams[0].tail, errors=streams[1].tail)


def _in_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    pipes: tuple[tuple[int, int], tuple[int, int]],
    mask: set[int | signal.Signals],
) -> NoReturn:
    """Become the program; nothing may return into the parent's code."""
    code = fault.USAGE
    try:
        for number, (reading, writing) in zip((1, 2), pipes, strict=True):
            os.close(reading)
            os.dup2(writing, number)
            os.close(writing)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if cwd is not None:
            os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        code = run.main(["--", *command])
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else fault.USAGE
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
        code = 1
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class _Waiting:
    """The parent's only loop: output, signals and the end of children."""

    def __init__(self, pid: int, streams: Sequence[tee.Stream]) -> None:
        self._pid = pid
        self._status: int | None = None
        self._open = {stream.source: stream for stream in streams}

    def run(self, numbers: set[signal.Signals], *, mask: set[int | signal.Signals]) -> Ended:
        reading, writing = os.pipe()
        for end in (reading, writing, *self._open):
            os.set_blocking(end, False)
        # So that the end of a child wakes the loop up.
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in numbers:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                signal.signal(number, self._forward)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with selectors.DefaultSelector() as selector:
            for source in (reading, *self._open):
                selector.register(source, selectors.EVENT_READ)
            self._loop(selector, reading)
        signal.set_wakeup_fd(-1)
        return _ended(self._status or 0)

    def _loop(self, selector: selectors.BaseSelector, wake: int) -> None:
        deadline = None
        while self._status is None or self._open:
            ready = selector.select(_IDLE_SECONDS)
            for key, _ in ready:
                if key.fd == wake:
                    _read(wake)
                else:
                    self._take(selector, key.fd)
            if not ready:
                self._flush()
            self._reap()
            if self._status is not None:
                deadline = deadline or time.monotonic() + _DRAIN_SECONDS
                if time.monotonic() > deadline:
                    break
        self._flush()

    def _take(self, selector: selectors.BaseSelector, source: int) -> None:
        content = _read(source)
        if content:
            self._open[source].take(content)
        elif content is not None:
            selector.unregister(source)
            self._open.pop(source).flush()
            os.close(source)

    def _flush(self) -> None:
        for stream in self._open.values():
            stream.flush()

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _reap(self) -> None:
        """Collect children that have ended; as process 1 also those that nobody else waits for."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._pid:
                    self._status = status


def _read(source: int) -> bytes | None:
    """Read what is there: nothing at the end, None when there is nothing yet."""
    try:
        return os.read(source, _CHUNK)
    except BlockingIOError:
        return None


def _ended(status: int) -> Ended:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return Ended(code=code)
    return Ended(code=fault.BY_SIGNAL - code, signal=-code)
