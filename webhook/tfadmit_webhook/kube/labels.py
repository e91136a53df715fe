"""The labels of namespaces as last read, each for a few seconds.

Thread-safe values, no I/O. A short memory instead of a watch: only those namespaces are asked for
in which something is judged, and the right that it takes is `get` alone.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# So long a changed label may go unnoticed; a burst of objects in one namespace asks once.
SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class _Entry:
    labels: Mapping[str, str]
    expires: float


class Labels:
    """Labels by namespace."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        """How many namespaces are remembered."""
        return len(self._entries)

    def get(self, name: str) -> Mapping[str, str] | None:
        """Give the labels, if they were read a moment ago."""
        entry = self._entries.get(name)
        return entry.labels if entry and entry.expires > self._clock() else None

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        """Remember labels, and forget those whose time is over."""
        now = self._clock()
        with self._lock:
            kept = {key: entry for key, entry in self._entries.items() if entry.expires > now}
            kept[name] = _Entry(labels=labels, expires=now + SECONDS)
            self._entries = kept
