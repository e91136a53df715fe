"""Threads that tell when one of a few objects has changed; who is told looks what it is.

One watch per object, selected by its name, so that rights by resourceName are enough. Each new
watch is told as a change: what happened between two is never missed. I/O: by way of `kube`.
"""

import logging
import random
import threading
import time
from collections.abc import Callable

from tfadmit_certs import kube

_LOG = logging.getLogger("tfadmit.certs")
# As client-go: a watch of 5 to 10 minutes, spread so that replicas do not all begin anew at once.
_WATCH_SECONDS = (300, 600)
# The API server sends a bookmark about once a minute; after three without one it is gone.
_SILENCE_SECONDS = 180.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
# A watch that ends at once every time is as good as a failure.
_SHORT_SECONDS = 1.0


class Watch:
    """A watch on one object, begun again whenever it ends, until the process does."""

    def __init__(
        self,
        api: kube.Api,
        *,
        path: str,
        name: str,
        changed: Callable[[], None],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._path = path
        self._name = name
        self._changed = changed
        self._chance = chance
        self._stopped = threading.Event()
        self._events: kube.Events | None = None
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; not waited for, the thread holds nothing up."""
        self._stopped.set()
        if events := self._events:
            events.interrupt()

    def _run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self._follow()
                short = time.monotonic() - began < _SHORT_SECONDS
                self._failures = self._failures + 1 if short else 0
            except kube.ApiError as error:
                self._failures += 1
                if not self._stopped.is_set():
                    fields = {"path": self._path, "name": self._name, "reason": str(error)}
                    _LOG.warning("watch", extra={"fields": fields})
            self._stopped.wait(self._pause())

    def _follow(self) -> None:
        low, high = _WATCH_SECONDS
        events = self._api.watch(
            self._path,
            query={
                "watch": "true",
                "fieldSelector": f"metadata.name={self._name}",
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(int(low + (high - low) * self._chance())),
            },
            silence=_SILENCE_SECONDS,
        )
        self._events = events
        if self._stopped.is_set():  # stop() came before there was anything to interrupt
            events.interrupt()
        self._changed()
        for event in events:
            if event.get("type") != "BOOKMARK":
                self._failures = 0
                self._changed()

    def _pause(self) -> float:
        if not self._failures:
            return 0.05
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 10))
        return longest * (0.5 + 0.5 * self._chance())
