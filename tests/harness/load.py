"""Pods that are created at a steady rate, and what became of each creation.

Open loop: the next pod is due when it is due, however long the last one took, so that a pause of
the server shows as failures or as time, never as a lower rate.
"""

from __future__ import annotations

import itertools
import queue
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Create = Callable[[int], object]
_WORKERS = 24


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One creation: seconds from when it was due, and the failure's sentence if it failed."""

    seconds: float
    failure: str = ""


@dataclass
class Report:
    """What became of all creations so far."""

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> Counter[str]:
        """How often each sentence came."""
        return Counter(outcome.failure for outcome in self.outcomes if outcome.failure)

    def line(self) -> str:
        """The counts, for people."""
        times = sorted(outcome.seconds for outcome in self.outcomes) or [0.0]
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        failed = sum(self.failures.values())
        return (
            f"{failed} of {len(self.outcomes)} failed,"
            f" {len(self.outcomes) / max(self.seconds, 0.001):.0f}/s,"
            f" median {statistics.median(times) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms,"
            f" longest {times[-1] * 1000:.0f} ms"
        )


class Load:
    """A number of threads that create; `report` may be read at any time."""

    def __init__(self, create: Create, *, rate: float) -> None:
        self._create = create
        self._rate = rate
        self._due: queue.SimpleQueue[tuple[int, float] | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self.report = Report()

    @contextmanager
    def running(self) -> Iterator[Report]:
        """Create as long as the context lasts; at its end every creation has its outcome.

        What is due and was not begun by then, on a machine that is too slow, is left out.
        """
        threads = [threading.Thread(target=self._work) for _ in range(_WORKERS)]
        pace = threading.Thread(target=self._pace)
        began = time.monotonic()
        for thread in (*threads, pace):
            thread.start()
        try:
            yield self.report
        finally:
            self._stopped.set()
            pace.join()
            for _ in threads:
                self._due.put(None)
            for thread in threads:
                thread.join()
            self.report.seconds = time.monotonic() - began

    def _pace(self) -> None:
        began = time.monotonic()
        for number in itertools.count():
            due = began + number / self._rate
            if self._stopped.wait(max(0.0, due - time.monotonic())):
                return
            self._due.put((number, due))

    def _work(self) -> None:
        while (item := self._due.get()) is not None:
            if self._stopped.is_set():
                continue
            number, due = item
            failure = ""
            try:
                self._create(number)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the outcome
                failure = f"{type(error).__name__}: {error}"
            self.report.outcomes.append(Outcome(seconds=time.monotonic() - due, failure=failure))
