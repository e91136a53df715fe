"""A thread that keeps a store equal to a collection of the API server, whatever happens to it.

List all, then watch from there; after each end of a watch, watch again from the last version; list
anew when that version is gone. Errors are waited out with growing pauses and logged when they begin
and when they end. Time, chance and waiting come from outside.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from tfadmit_webhook import raw
from tfadmit_webhook.kube import asking, collection

_LOG = logging.getLogger("tfadmit")
# As client-go's reflector: pages of 500, a watch of 5 to 10 minutes so that replicas spread out.
_PAGE = 500
_WATCH_SECONDS = (300, 600)
# The API server sends a bookmark about once a minute; after three without one it is gone.
_SILENCE_SECONDS = 180.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_STOP_SECONDS = 2.0


class Monitor(Protocol):
    """Who is told how the store does."""

    def cache_changed(self, *, objects: int) -> None:
        """Take note of the number of objects."""

    def heard(self) -> None:
        """Take note that the API server said something about them just now."""

    def watch_changed(self, *, up: bool) -> None:
        """Take note of whether the watch is up."""


class Store(Protocol):
    """Where the objects go."""

    def __len__(self) -> int:
        """How many there are."""

    def replace(self, items: Iterable[raw.JsonObject]) -> None:
        """Take a complete list in place of everything."""

    def put(self, item: raw.JsonObject) -> None:
        """Take an object that was added or changed."""

    def remove(self, item: raw.JsonObject) -> None:
        """Take note of a deletion."""

    def sweep(self) -> None:
        """Forget what has grown old; called every minute or so."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Time and chance."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    first_pause: float = _FIRST_PAUSE
    longest_pause: float | None = None
    """The longest pause after failures; None for the usual one."""


class Watch:
    """The thread, and what it knows of itself."""

    def __init__(
        self,
        *,
        source: collection.Collection,
        store: Store,
        monitor: Monitor,
        timing: Timing | None = None,
    ) -> None:
        self._source = source
        self._store = store
        self._monitor = monitor
        self._timing = timing or Timing()
        self._stopped = threading.Event()
        self._events: collection.Events | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._version: str | None = None
        self._paged = True
        self._failures = 0
        self.synced = False
        """Whether the store was complete once."""

        self.trouble = ""
        """What keeps the watch from working now, in a sentence; empty when nothing does."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait a little until nothing runs any more."""
        self._stopped.set()
        if events := self._events:
            events.interrupt()
        if self._thread.is_alive():
            # A list may still be on its way; it must not hold up the end of the process.
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            began = self._timing.clock()
            try:
                self._round()
            except asking.ExpiredError:
                self._version = None
                self._failures += 1
            except asking.NotFoundError as error:
                self._no_such_kind(error)
            except asking.ApiError as error:
                self._failed(str(error))
            except Exception:  # noqa: BLE001 - logged, and the thread goes on
                # A fault of ours must not end the thread: the cache would grow old unnoticed.
                self._version = None
                _LOG.exception("watch", extra={"fields": {"fault": True}})
                self._failures += 1
            else:
                # A watch that ends at once every time is as good as a failure.
                short = self._timing.clock() - began < self._timing.first_pause
                self._failures = self._failures + 1 if short else 0
            self._pause()

    def _round(self) -> None:
        """List when that is needed, then follow one watch to its end."""
        if self._version is None:
            self._list()
        low, high = _WATCH_SECONDS
        seconds = int(low + (high - low) * self._timing.chance())
        events = self._source.watch(
            version=self._version or "", seconds=seconds, silence=_SILENCE_SECONDS
        )
        self._events = events
        if self._stopped.is_set():  # stop() came before there was anything to close
            events.interrupt()
        self._working()
        for event in events:
            self._take(event)

    def _list(self) -> None:
        # Page by page, so that thousands of whole objects are never held at once.
        self._store.replace(self._pages())
        self._paged = True
        self._complete()

    def _pages(self) -> Iterator[raw.JsonObject]:
        token = ""
        while True:
            try:
                page = self._source.page(limit=_PAGE if self._paged else None, token=token)
            except asking.ExpiredError:
                # The list grew old between its pages: next time in one piece.
                self._paged = False
                raise
            yield from (item for item in raw.sequence(page.get("items")) if isinstance(item, dict))
            metadata = raw.mapping(page.get("metadata"))
            token = raw.text(metadata.get("continue"))
            if not token:
                break
        self._version = raw.text(metadata.get("resourceVersion")) or None
        if self._version is None:
            raise asking.ApiError(f"asked for {self._source.what}: the list has no resourceVersion")

    def _take(self, event: raw.JsonObject) -> None:
        kind, item = event.get("type"), raw.mapping(event.get("object"))
        if kind == "ERROR":
            _raise(item, asked=f"to watch {self._source.what}")
        named = bool(raw.at(item, ("metadata", "name")))
        if kind == "BOOKMARK":
            self._store.sweep()
        elif kind in ("ADDED", "MODIFIED") and named:
            self._store.put(item)
        elif kind == "DELETED" and named:
            self._store.remove(item)
        self._version = raw.text(raw.at(item, ("metadata", "resourceVersion"))) or self._version
        self._failures = 0
        self._monitor.heard()
        self._monitor.cache_changed(objects=len(self._store))

    def _complete(self) -> None:
        self.synced = True
        self._monitor.heard()
        self._monitor.cache_changed(objects=len(self._store))

    def _no_such_kind(self, error: asking.ApiError) -> None:
        """The kind is not installed: there are none, and that is all there is to know."""
        self._version = None
        self._store.replace(())
        self._complete()
        self._failed(f"{self._source.absent}: {error}")
        self._failures += 10  # as seldom as possible; installing it is noticed within seconds

    def _working(self) -> None:
        if self.trouble:
            _LOG.info("watch", extra={"fields": {"up": True, "after": self.trouble}})
        self.trouble = ""
        self._monitor.watch_changed(up=True)

    def _failed(self, sentence: str) -> None:
        self._failures += 1
        if sentence != self.trouble and not self._stopped.is_set():
            _LOG.warning("watch", extra={"fields": {"up": False, "message": sentence}})
        self.trouble = sentence
        self._monitor.watch_changed(up=False)

    def _pause(self) -> None:
        if self._failures:
            timing = self._timing
            self._stopped.wait(
                pause(
                    self._failures,
                    first=timing.first_pause,
                    longest=timing.longest_pause or _LONGEST_PAUSE,
                    chance=timing.chance(),
                )
            )
        self._store.sweep()


def pause(failures: int, *, first: float, longest: float, chance: float) -> float:
    """Give the seconds to wait after so many failures in a row.

    Twice as long after each, half of it by chance: replicas must not come back all at once.
    """
    if not failures:
        return 0.0
    grown = min(first * 2.0 ** min(failures - 1, 10), longest)
    return grown * (0.5 + 0.5 * chance)


def _raise(status: raw.JsonObject, *, asked: str) -> None:
    message = raw.text(status.get("message")) or "no message"
    if status.get("code") == 410:
        raise asking.ExpiredError(message)
    raise asking.ApiError(f"asked {asked}: {status.get('code')}, {message}")
