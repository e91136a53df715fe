"""`facts.ClusterReader` on a real cluster: the cache, live answers, and the thread behind them."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from tfadmit_webhook import facts, raw, workload
from tfadmit_webhook.kube import api, asking, watch
from tfadmit_webhook.kube.cache import Cache
from tfadmit_webhook.kube.flight import Flights
from tfadmit_webhook.kube.labels import Labels

Answer = TypeVar("Answer")


class Monitor(watch.Monitor, Protocol):
    """Who is told how the cache does and what was looked up."""

    def looked_up(
        self, *, kind: str, source: str, outcome: str, seconds: float | None = None
    ) -> None:
        """Take note of a look-up."""


class Cluster:
    """The cluster as admission sees it. `start()` it after any fork, `stop()` it at the end."""

    def __init__(
        self, server: api.Api, *, monitor: Monitor, timing: watch.Timing | None = None
    ) -> None:
        timing = timing or watch.Timing()
        self._server = server
        self._monitor = monitor
        self._clock = timing.clock
        self._cache = Cache(clock=timing.clock)
        self._watch = watch.Watch(
            source=server.jobsets(), store=self._cache, monitor=monitor, timing=timing
        )
        self._flights: Flights[facts.Workload] = Flights()
        self._runtime_flights: Flights[raw.JsonObject] = Flights()
        self._labels = Labels(clock=timing.clock)
        self._label_flights: Flights[Mapping[str, str]] = Flights()

    def start(self) -> None:
        """Begin to follow the JobSets."""
        self._watch.start()

    def stop(self) -> None:
        """End following."""
        self._watch.stop()

    def failing(self) -> list[str]:
        """Why requests should not come here yet.

        Only until the cache was complete once: later the watch may be down, and live answers take
        its place.
        """
        if self._watch.synced:
            return []
        return [f"JobSets are not listed yet: {self._watch.trouble or 'asking'}"]

    def cached_jobset(self, *, namespace: str, name: str) -> facts.Workload | None:
        """Give the JobSet as last seen."""
        found = self._cache.get(namespace=namespace, name=name)
        outcome = "hit" if found else "miss"
        self._monitor.looked_up(kind="jobset", source="cache", outcome=outcome)
        return found

    def live_jobset(self, *, namespace: str, name: str, timeout: float) -> facts.Workload | None:
        """Ask for the JobSet, and remember it."""

        def question(seconds: float) -> facts.Workload | None:
            try:
                item = self._server.jobset(namespace=namespace, name=name, timeout=seconds)
            except asking.NotFoundError:
                self._cache.forget(namespace=namespace, name=name)
                return None
            return self._cache.offer(item)

        return self._ask(self._flights, ("jobset", namespace, name), question, timeout=timeout)

    def live_job(self, *, namespace: str, name: str, timeout: float) -> facts.Workload | None:
        """Ask for the Job."""

        def question(seconds: float) -> facts.Workload | None:
            try:
                item = self._server.job(namespace=namespace, name=name, timeout=seconds)
            except asking.NotFoundError:
                return None
            return workload.job(item)

        return self._ask(self._flights, ("job", namespace, name), question, timeout=timeout)

    def runtime(
        self, *, kind: facts.RuntimeKind, namespace: str, name: str, timeout: float
    ) -> raw.JsonObject | None:
        """Ask for a runtime."""

        def question(seconds: float) -> raw.JsonObject | None:
            try:
                return self._server.runtime(
                    kind=kind, namespace=namespace, name=name, timeout=seconds
                )
            except asking.NotFoundError:
                return None

        key = (kind.lower(), namespace, name)
        return self._ask(self._runtime_flights, key, question, timeout=timeout)

    def namespace_labels(self, *, name: str, timeout: float) -> Mapping[str, str] | None:
        """Give the labels of a namespace, from memory when they were read a moment ago."""
        if (known := self._labels.get(name)) is not None:
            self._monitor.looked_up(kind="namespace", source="cache", outcome="hit")
            return known

        def question(seconds: float) -> Mapping[str, str] | None:
            try:
                item = self._server.namespace(name=name, timeout=seconds)
            except asking.NotFoundError:
                return None
            labels = raw.strings(raw.at(item, ("metadata", "labels")))
            self._labels.put(name, labels)
            return labels

        key = ("namespace", "", name)
        return self._ask(self._label_flights, key, question, timeout=timeout)

    def _ask(
        self,
        flights: Flights[Answer],
        key: tuple[str, str, str],
        question: Callable[[float], Answer | None],
        *,
        timeout: float,
    ) -> Answer | None:
        kind, *place = key
        began = self._clock()
        outcome = "failed"

        def with_time_left() -> Answer | None:
            left = timeout - (self._clock() - began)
            if left <= 0:
                raise TimeoutError
            return question(left)

        try:
            found = flights.ask(key, with_time_left, timeout=timeout)
            outcome = "missing" if found is None else "found"
        except TimeoutError as error:
            where = "/".join(word for word in place if word)
            raise facts.LookupFailedError(
                f"no time was left to ask the API server for {kind} {where}; try again"
            ) from error
        except asking.ApiError as error:
            raise facts.LookupFailedError(f"{error}; try again") from error
        finally:
            self._monitor.looked_up(
                kind=kind, source="live", outcome=outcome, seconds=self._clock() - began
            )
        return found
