"""TrainJobs and what belongs to them in a live cluster: read, patch, delete, follow logs.

Implements the protocols `jobs.read.Cluster` and `logs.source.Cluster`; what a refusal means for the
user is said here, what an object means elsewhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tfadmit_client import fault
from tfadmit_client.cluster import listing, live, live_wire
from tfadmit_webhook import raw


def connect(*, kubeconfig: str | None = None, context: str | None = None) -> "Jobs":
    """Connect as `live.connect` does.

    Raises:
        ClientError: the kubeconfig cannot be used.
    """
    return Jobs(live.connect(kubeconfig=kubeconfig, context=context))


class Jobs:
    """The API server, as commands about jobs speak to it."""

    def __init__(self, connected: live.Live) -> None:
        self._wire = connected.wire()
        self.default_namespace = connected.default_namespace
        self.flags = connected.flags

    def objects(
        self, kind: listing.Kind, *, namespace: str | None, **selectors: str
    ) -> Iterator[raw.JsonObject]:
        """Give all objects of a kind, of one namespace or of all.

        Raises:
            ReadError: the rest cannot be read, and why.
        """
        pages = _Pages(wire=self._wire, selectors=selectors)
        return map(raw.mapping, listing.objects(pages, kind, namespace=namespace))

    def get(self, kind: listing.Kind, *, namespace: str, name: str) -> raw.JsonObject | None:
        """Give an object; None when there is none.

        Raises:
            ReadError: it cannot be read, and why.
        """
        return self._asked("GET", kind, namespace=namespace, name=name)

    def patch(
        self, kind: listing.Kind, *, namespace: str, name: str, body: Mapping[str, Any]
    ) -> raw.JsonObject | None:
        """Change an object by a merge patch; None when there is none.

        Raises:
            ReadError: it is refused, and why.
        """
        return self._asked("PATCH", kind, namespace=namespace, name=name, body=body)

    def delete(self, kind: listing.Kind, *, namespace: str, name: str) -> raw.JsonObject | None:
        """Delete an object, and what it owns after it; None when there is none.

        Not the other way round (`Foreground`): Trainer 2.3 makes a new JobSet for a TrainJob that
        waits for its old one to go, and the training starts once more.

        Raises:
            ReadError: it is refused, and why.
        """
        body = {"propagationPolicy": "Background"}
        return self._asked("DELETE", kind, namespace=namespace, name=name, body=body)

    def version_of(self, group: str) -> str:
        """Give the version in which a group of the API is served; empty when it is not.

        Raises:
            ReadError: it cannot be asked.
        """
        try:
            found = self._wire.request("GET", f"/apis/{group}")
        except listing.StatusError as error:
            if error.status in (403, 404):
                return ""
            raise
        return raw.text(raw.at(found, ("preferredVersion", "version")))

    def log(self, namespace: str, pod: str, *, query: Mapping[str, str], silence: float) -> Any:  # noqa: ANN401 - lines that can be interrupted
        """Begin the log of a container.

        Raises:
            ReadError: there is none, and why.
        """
        path = f"{_path(_POD, namespace)}/{pod}/log"
        try:
            return self._wire.stream(path, query=query, silence=silence)
        except listing.StatusError as error:
            if error.status == 403:
                raise fault.ClientError(
                    f"you may not read logs in namespace {namespace} (403): a Role with the verb "
                    f"get on pods/log, bound to you, grants that: {error.said}"
                ) from error
            raise

    def changes(
        self, kind: listing.Kind, *, namespace: str, silence: float, **selectors: str
    ) -> live_wire.Stream:
        """Begin to watch objects of a kind: a line for each change.

        Raises:
            ReadError: they cannot be watched, and why.
        """
        query = {"watch": "true", **selectors}
        return self._wire.stream(_path(kind, namespace), query=query, silence=silence)

    def _asked(
        self, method: str, kind: listing.Kind, *, namespace: str, name: str, body: object = None
    ) -> raw.JsonObject | None:
        path = f"{_path(kind, namespace)}/{name}"
        content_type = live_wire.MERGE if method == "PATCH" else "application/json"
        try:
            return self._wire.request(method, path, body=body, content_type=content_type)
        except listing.StatusError as error:
            if error.status == 404:
                self._must_be_served(error, kind)
                return None
            if error.status == 403 and "denied the request" not in error.said:
                verb = method.lower()
                resource = f"{kind.plural}.{kind.group}".rstrip(".")
                raise listing.ReadError(
                    f"you may not {verb} {resource} in namespace {namespace} (403): a Role with "
                    f"the verb {verb} on it, bound to you, grants that: {error.said}"
                ) from error
            raise

    def _must_be_served(self, error: listing.StatusError, kind: listing.Kind) -> None:
        """Tell an absent object from a kind that the cluster does not have."""
        # "the server could not find the requested resource", or a page without a message
        if kind.group and "not found" not in error.said.lower():
            raise live_wire.named(error, kind, namespace=None, flags=self._wire.flags) from error


_POD = listing.Kind(name="Pod", group="", version="v1")


@dataclass(frozen=True, kw_only=True)
class _Pages:
    """Pages of objects that selectors choose."""

    wire: live_wire.Wire
    selectors: Mapping[str, str]

    def page(
        self, kind: listing.Kind, *, namespace: str | None, limit: int, token: str
    ) -> raw.JsonObject:
        """Ask for a page."""
        query = {"limit": str(limit), **self.selectors, **({"continue": token} if token else {})}
        try:
            return self.wire.request("GET", _path(kind, namespace), query=query)
        except listing.StatusError as error:
            raise live_wire.named(
                error, kind, namespace=namespace, flags=self.wire.flags
            ) from error


def _path(kind: listing.Kind, namespace: str | None) -> str:
    group = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{namespace}" if namespace and kind.namespaced else ""
    return f"{group}{where}/{kind.plural}"
