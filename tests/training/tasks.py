"""Processes with TensorFlow: started in groups of their own, watched, always ended.

`harness.process` ends a process when a test is done; here processes are expected to end by
themselves, and how they end is what is tested.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.process import _LAUNCHER
from training.environment import TensorFlow

ROOT = Path(__file__).parents[2]
_POLL_SECONDS = 0.05


class Task:
    """One process of a training."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        tensorflow: TensorFlow,
        env: Mapping[str, str],
        directory: Path,
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        path = [str(tensorflow.overlay)] if tensorflow.overlay else []
        environ = {
            # Only what a container has: nothing of the machine that runs the tests.
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "PYTHONPATH": os.pathsep.join([*path, str(ROOT / "trainer")]),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            # One thread each: several processes share two cores.
            "OMP_NUM_THREADS": "1",
            "TF_NUM_INTRAOP_THREADS": "1",
            "TF_NUM_INTEROP_THREADS": "2",
            "TF_CPP_MIN_LOG_LEVEL": "1",
            "TF_ENABLE_ONEDNN_OPTS": "0",
            "CUDA_VISIBLE_DEVICES": "-1",
            "TFADMIT_OUTPUT_DIR": str(directory / "output"),
            **env,
        }
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [*launcher, str(tensorflow.python), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs; minus the signal's number when one ended it."""
        return self._child.poll()

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self, *, timeout: float) -> int:
        """The exit code, once it has ended."""
        _until(lambda: self.code is not None, timeout=timeout, what="end", task=self)
        return self._child.returncode

    def says(self, text: str, *, timeout: float = 60) -> None:
        """Wait until the log has this pattern."""
        wanted = re.compile(text)
        _until(
            lambda: bool(wanted.search(self.text)) or self.code is not None,
            timeout=timeout, what=f"say {text!r}", task=self,
        )  # fmt: skip
        assert wanted.search(self.text), f"{self.name} ended without {text!r}:\n{self.tail()}"

    def tail(self) -> str:
        return f"--- {self.name} (exit code {self.code}):\n" + "\n".join(
            self.text.splitlines()[-25:]
        )

    def end(self) -> None:
        """End it and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()


def ended(tasks: Iterable[Task], *, timeout: float) -> list[int]:
    """The exit codes of all, once they have all ended within the time together."""
    deadline = time.monotonic() + timeout
    return [task.wait(timeout=max(0.0, deadline - time.monotonic())) for task in tasks]


def alive(task: Task) -> bool:
    """Whether anything of the task's process group is left."""
    try:
        os.killpg(task.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _until(done: Callable[[], bool], *, timeout: float, what: str, task: Task) -> None:
    deadline = time.monotonic() + timeout
    while not done():
        if time.monotonic() > deadline:
            raise AssertionError(f"{task.name} did not {what} in {timeout:.0f} s\n{task.tail()}")
        time.sleep(_POLL_SECONDS)
