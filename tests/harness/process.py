"""One child process: started in its own group, waited for until healthy, always ended.

What a test starts ends with the test run: by ``stop``, at interpreter exit, and, when the test
run itself is killed, by the kernel's parent-death signal.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_POLL_SECONDS = 0.05
_TAIL_LINES = 30

# Asks the kernel to end this process with its parent, then becomes the program. In a process of
# its own, because `preexec_fn` is unsafe once the parent has threads. 1 is PR_SET_PDEATHSIG;
# SIGKILL, because an API server that is asked to end lingers when its etcd ends first.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""

_running: set[Process] = set()


class ProcessError(RuntimeError):
    """A program ended or stayed unhealthy; the message has its command and the end of its log."""


class Process:
    """A program that can be started, stopped and started again.

    Start it from the main thread: the kernel takes the end of the starting *thread* for the
    end of the parent.
    """

    def __init__(
        self,
        *,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self._environ = {**os.environ, **(environ or {})}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The running program's id."""
        if self._child is None:
            raise ProcessError(f"{self.name} is not running")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def start(self, *, ready: Callable[[], bool], timeout: float = 60) -> Process:
        """Start it and return once ``ready`` says so; on any failure nothing is left running."""
        if self.running:
            raise ProcessError(f"{self.name} is already running")
        self._launch()
        try:
            self._wait(ready, timeout=timeout)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, *, grace: float = 10) -> int | None:
        """Ask the program to end, then end its whole group; give its exit code.

        Does nothing when it is not running.
        """
        child, self._child = self._child, None
        if child is None:
            return None
        try:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=grace)
        finally:
            _kill_group(child.pid)
            child.wait()
            _running.discard(self)
        return child.returncode

    def kill(self) -> None:
        """End the program and all that it started without asking, as a crash does."""
        if self._child is not None:
            _kill_group(self._child.pid)
            self._child.wait()
        self.stop()

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-_TAIL_LINES:])

    def _launch(self) -> None:
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [*launcher, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environ,
                start_new_session=True,
            )
        _running.add(self)

    def _wait(self, ready: Callable[[], bool], *, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while self.running:
            if ready():
                return
            if time.monotonic() > deadline:
                raise ProcessError(self._report(f"was not ready after {timeout:g} s"))
            time.sleep(_POLL_SECONDS)
        code = self._child.returncode if self._child else None
        raise ProcessError(self._report(f"ended with code {code} before it was ready"))

    def _report(self, what: str) -> str:
        return (
            f"{self.name} {what}\ncommand: {shlex.join(self.command)}\n"
            f"end of {self.log}:\n{self.tail() or '(nothing)'}"
        )


def _kill_group(leader: int) -> None:
    """End what the program started itself. Its group has the program's id."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


@atexit.register
def _stop_all() -> None:
    for process in tuple(_running):
        process.stop(grace=2)
