"""A cluster reader that does not wait until it is told that it may.

What the cache answers is answered at once; the first question that would wait raises, and the same
review can be judged again by somebody who has the time. What the cache said is remembered for that,
so that both rounds see the same and each answer counts once. One for each review.
"""

from collections.abc import Mapping

from tfadmit_webhook import facts, raw


class WouldWaitError(Exception):
    """The API server would have to be asked."""


class Reader:
    """`facts.ClusterReader` around another one."""

    def __init__(self, reader: facts.ClusterReader) -> None:
        self._reader = reader
        self._waits = False
        self._seen: dict[tuple[str, str], facts.Workload | None] = {}

    def wait(self) -> None:
        """Ask whatever is asked from now on."""
        self._waits = True

    def cached_jobset(self, *, namespace: str, name: str) -> facts.Workload | None:
        """Give the JobSet as last seen; the same as before in a second round."""
        key = namespace, name
        if key not in self._seen:
            self._seen[key] = self._reader.cached_jobset(namespace=namespace, name=name)
        return self._seen[key]

    def live_jobset(self, *, namespace: str, name: str, timeout: float) -> facts.Workload | None:
        """Ask for the JobSet."""
        return self._patient().live_jobset(namespace=namespace, name=name, timeout=timeout)

    def live_job(self, *, namespace: str, name: str, timeout: float) -> facts.Workload | None:
        """Ask for the Job."""
        return self._patient().live_job(namespace=namespace, name=name, timeout=timeout)

    def runtime(
        self, *, kind: facts.RuntimeKind, namespace: str, name: str, timeout: float
    ) -> raw.JsonObject | None:
        """Ask for a runtime."""
        return self._patient().runtime(kind=kind, namespace=namespace, name=name, timeout=timeout)

    def namespace_labels(self, *, name: str, timeout: float) -> Mapping[str, str] | None:
        """Ask for the labels of a namespace; whether they are known already is not known here."""
        return self._patient().namespace_labels(name=name, timeout=timeout)

    def _patient(self) -> facts.ClusterReader:
        if not self._waits:
            raise WouldWaitError
        return self._reader
