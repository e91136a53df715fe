"""The JobSets of the cluster as last seen, reduced to `facts.Workload`.

Thread-safe values, no I/O. Two sources write: the watch, which says all that happens, in order; and
live answers, which may be ahead of it. An answer of the second kind that the watch does not confirm
disappears after a while: the JobSet may have been deleted before the answer was stored, and then no
event would ever take it away.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tfadmit_webhook import facts, raw, workload

# The watch is milliseconds behind as a rule, and a few seconds while it starts anew.
UNCONFIRMED_SECONDS = 30.0

Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class _Entry:
    work: facts.Workload
    version: int | None
    """The resourceVersion, when it is a number; Kubernetes promises that since 1.35."""

    expires: float | None = None
    """When an answer that the watch has not confirmed is forgotten."""


class Cache:
    """JobSets by namespace and name."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[Key, _Entry] = {}

    def __len__(self) -> int:
        """How many JobSets are remembered."""
        return len(self._entries)

    def get(self, *, namespace: str, name: str) -> facts.Workload | None:
        """Give a JobSet, if it is remembered."""
        entry = self._entries.get((namespace, name))
        return None if entry is None or self._expired(entry) else entry.work

    def replace(self, items: Iterable[raw.JsonObject]) -> None:
        """Take a complete list in place of everything, except answers that are newer than it."""
        listed = dict(_keyed(item) for item in items)
        with self._lock:
            for key, entry in self._entries.items():
                fresh = entry.expires is not None and not self._expired(entry)
                if fresh and (key not in listed or _newer(entry, listed[key])):
                    listed[key] = entry
            self._entries = listed

    def put(self, item: raw.JsonObject) -> None:
        """Take what the watch says about a JobSet that was added or changed."""
        key, entry = _keyed(item)
        with self._lock:
            known = self._entries.get(key)
            if known is None or not _newer(known, entry):
                self._entries[key] = entry

    def remove(self, item: raw.JsonObject) -> None:
        """Take note of a deletion. A JobSet of the same name that came after it stays."""
        key, gone = _keyed(item)
        with self._lock:
            known = self._entries.get(key)
            if known and (known.work.uid == gone.work.uid or not _newer(known, gone)):
                del self._entries[key]

    def offer(self, item: raw.JsonObject) -> facts.Workload:
        """Take a live answer unless something newer is known; give it as a workload."""
        key, answer = _keyed(item, expires=self._clock() + UNCONFIRMED_SECONDS)
        with self._lock:
            known = self._entries.get(key)
            if known is None or self._expired(known) or _newer(answer, known):
                self._entries[key] = answer
        return answer.work

    def forget(self, *, namespace: str, name: str) -> None:
        """Drop an unconfirmed answer after the API server said that there is no such JobSet."""
        with self._lock:
            entry = self._entries.get((namespace, name))
            if entry and entry.expires is not None:
                del self._entries[namespace, name]

    def sweep(self) -> None:
        """Forget answers that were not confirmed in time."""
        with self._lock:
            gone = [key for key, entry in self._entries.items() if self._expired(entry)]
            for key in gone:
                del self._entries[key]

    def _expired(self, entry: _Entry) -> bool:
        return entry.expires is not None and entry.expires <= self._clock()


def _keyed(item: raw.JsonObject, *, expires: float | None = None) -> tuple[Key, _Entry]:
    work = workload.jobset(item)
    word = raw.text(raw.at(item, ("metadata", "resourceVersion")))
    version = int(word) if word.isascii() and word.isdigit() else None
    return (work.namespace, work.name), _Entry(work=work, version=version, expires=expires)


def _newer(one: _Entry, other: _Entry) -> bool:
    """Whether one is known to be newer than the other; unknown versions are not."""
    return one.version is not None and other.version is not None and one.version > other.version
