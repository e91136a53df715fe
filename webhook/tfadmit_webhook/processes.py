"""Several processes that answer reviews on one port, and the main process that made them.

Python runs one thread at a time, so one process uses one processor. The main process loads
everything, takes the ports and forks; the memory of what was loaded is shared. It answers no
reviews: it passes signals on, speaks for all on the plain port, and takes up what else ends in its
container, where it is process 1. The processes live and die together: when one ends unasked the
others are told to end, and the exit code says so, as that of a single process would.
"""

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from prometheus_client.core import Metric

from tfadmit_webhook import line, listen, merged, metrics
from tfadmit_webhook.signals import INTERRUPTED, Signals

_LOG = logging.getLogger("tfadmit")
# All together, in seconds: a probe of the shipped manifests waits for 5.
_PATIENCE = 4.0
_SWEEP_SECONDS = 1.0
FAILING, METRICS = "failing", "metrics"
_FAILED = 1


@dataclass(kw_only=True)
class Process:
    """A process that answers reviews, as the main process knows it."""

    pid: int
    asker: line.Asker
    ended: bool = False


def start(count: int, work: Callable[[Connection], None]) -> list[Process]:
    """Make processes that do this work; it is given the line to the main process.

    To be called while there is one thread.
    """
    gc.collect()
    gc.freeze()  # what the collector does not touch stays shared
    made: list[Process] = []
    for _ in range(count):
        ours, theirs = multiprocessing.Pipe()
        pid = os.fork()
        if pid == 0:
            ours.close()  # and the others too, or no line would break with the main process
            for process in made:
                process.asker.close()
            _be(work, theirs)
        theirs.close()
        made.append(Process(pid=pid, asker=line.Asker(ours, patience=_PATIENCE / count)))
    return made


def _be(work: Callable[[Connection], None], connection: Connection) -> None:
    """Do the work and end, without what the main process does at its own end."""
    code = 1
    try:
        # Ctrl-C reaches the main process alone, which passes it on; twice would mean more.
        os.setpgid(0, 0)
        work(connection)
        code = 0
    except BaseException:  # noqa: BLE001 - the last place where it can be told
        _LOG.exception("process", extra={"fields": {}})
    finally:
        os._exit(code)


class Main:
    """The main process at work."""

    def __init__(self, made: Sequence[Process]) -> None:
        self._made = made
        self._told = False
        self.plain: Callable[[], listen.Door] | None = None
        """Makes the door of the plain port, in the loop."""

        self.code = 0
        """The exit code for the server."""

    async def live(self, signals: Signals) -> None:
        """Wait until all processes have ended."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        threading.Thread(target=self._wait, args=(loop, done), name="wait", daemon=True).start()
        signals.listen(self._pass_on)
        door = self.plain() if self.plain else None
        if door:
            door.open()
        while not done.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(done.wait(), _SWEEP_SECONDS)
            if door:
                door.sweep()
        if door:
            door.close()
            await door.finish(0.1)

    def _wait(self, loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
        """Take up whatever ends, in a thread: also what others left to process 1."""
        while not all(process.ended for process in self._made):
            pid, status = os.waitpid(-1, 0)
            for process in self._made:
                if process.pid == pid:
                    process.ended = True
                    self._ended(pid, os.waitstatus_to_exitcode(status))
        loop.call_soon_threadsafe(done.set)

    def _ended(self, pid: int, code: int) -> None:
        if self._told and code in (0, INTERRUPTED):
            self.code = self.code or code
            return
        self.code = _FAILED
        _LOG.error("process ended", extra={"fields": {"pid": pid, "code": code}})
        self._pass_on(signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        self._told = True
        for process in self._made:
            if not process.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    def silent(self) -> list[str]:
        """Say which processes do not answer, one line each; for one thread, as the next two."""
        return [
            f"process {process.pid} does not answer"
            for process in self._made
            if process.asker.ask(FAILING) is None and not process.ended
        ]

    def failing(self) -> list[str]:
        """Why requests should not come here, one line each."""
        lines = self.silent()
        for process in self._made:
            lines += process.asker.last.get(FAILING, [])
            if process.ended:
                lines.append(f"process {process.pid} has ended")
        return list(dict.fromkeys(lines))

    def collect(self) -> list[Metric]:
        """Give the metrics of all processes as those of one server; a collector of Prometheus."""
        for process in self._made:
            process.asker.ask(METRICS)
        pages = [process.asker.last.get(METRICS, ()) for process in self._made]
        return merged.families(pages, gauges=metrics.GAUGES)
