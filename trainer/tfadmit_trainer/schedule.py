"""When to ask for which name: paced over the whole cluster, later and later while it is missing.

Pure given the time: no clock, no thread, no socket. The numbers that spare the name servers stand
here.
"""

import heapq
import random
from collections.abc import Hashable, Sequence
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

# All tasks ask for all names at the same time, so a task's share gets smaller with their number.
# CoreDNS's own measurements give some 30,000 answers a second for one replica; a cluster has two or
# more, which leaves half to everybody else.
_CLUSTER_PER_SECOND: Final = 30_000.0
# A task alone is never faster, so that fifty names do not come as one packet storm …
_MOST_PER_SECOND: Final = 500.0
# … and never slower: 10,000 names in five and a half minutes. Beyond some 1,000 tasks a cluster
# needs a cache on each node (NodeLocal DNSCache), which answers all tasks of the node.
_LEAST_PER_SECOND: Final = 30.0
# Unused share is kept for so long: what has been idle does not start with a burst.
_BURST_SECONDS: Final = 0.05

# A name that is not there is answered from a cache for 5 s (CoreDNS's `kubernetes` plugin), so
# asking much sooner learns nothing; a name that has just been published is seen after 10 s at most.
_FIRST_SECONDS: Final = 2.0
_FACTOR: Final = 1.6
_MOST_SECONDS: Final = 10.0
# Tasks that started in the same second do not stay in step.
_JITTER: Final = 0.25


def rate(tasks: int) -> float:
    """How many names a second one task of so many may ask for."""
    return min(_MOST_PER_SECOND, max(_LEAST_PER_SECOND, _CLUSTER_PER_SECOND / max(1, tasks)))


class Schedule(Generic[Key]):
    """What is due, in an order of its own for each task."""

    def __init__(
        self, keys: Sequence[Key], *, per_second: float, now: float, source: random.Random
    ) -> None:
        order = list(keys)
        # Each task starts elsewhere, so that the first to ask fill the caches for the others.
        source.shuffle(order)
        self._heap = [(now, position, key) for position, key in enumerate(order)]
        self._source = source
        self._gap = 1.0 / per_second
        self._free = now
        self._tries: dict[Key, int] = {}
        self._positions = len(order)

    def take(self, *, now: float) -> list[Key]:
        """Give what may be asked for now, the longest overdue first."""
        self._free = max(self._free, now - _BURST_SECONDS)
        taken: list[Key] = []
        while self._heap and max(self._heap[0][0], self._free) <= now:
            taken.append(heapq.heappop(self._heap)[2])
            self._free += self._gap
        return taken

    def again(self, key: Key, *, now: float) -> None:
        """Ask for this one again, later than the last time."""
        tries = self._tries[key] = self._tries.get(key, -1) + 1
        delay = min(_MOST_SECONDS, _FIRST_SECONDS * _FACTOR ** min(tries, 10))
        delay *= self._source.uniform(1 - _JITTER, 1 + _JITTER)
        self._positions += 1
        heapq.heappush(self._heap, (now + delay, self._positions, key))

    def next(self) -> float | None:
        """When something is due; None when nothing is left."""
        return max(self._heap[0][0], self._free) if self._heap else None
