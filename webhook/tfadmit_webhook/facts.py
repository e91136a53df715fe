"""What admission needs to know of other objects, and the seam through which it learns it.

Frozen results and a protocol; `kube` implements it against the API server, `StaticReader` from
values. No look-up happens here and nothing is computed from the facts (`workload` and `cluster`
do).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from tfadmit_trainer import contract
from tfadmit_webhook import raw

RuntimeKind = Literal["ClusterTrainingRuntime", "TrainingRuntime"]


@dataclass(frozen=True, kw_only=True)
class TaskGroup:
    """The pods of one replicated job (or of one plain Job), all of the same role."""

    name: str
    role: contract.Role
    replicas: int
    completions: int
    port: int | None = None
    short_address: bool = False
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of tasks in this group."""
        return self.replicas * self.completions


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A JobSet or a plain Job, reduced to what its tasks' addresses follow from.

    `groups` holds the members of the TensorFlow cluster in the order of the object.
    """

    kind: Literal["JobSet", "Job"]
    namespace: str
    name: str
    uid: str
    subdomain: str
    suspended: bool
    groups: tuple[TaskGroup, ...]
    has_names: bool = True
    """Whether its pods get host names and a Service that publishes them."""

    def group(self, name: str) -> TaskGroup | None:
        """Give the group of this name."""
        return next((group for group in self.groups if group.name == name), None)


class LookupFailedError(Exception):
    """The API server could not be asked; the message says what was asked and what it answered."""


class ClusterReader(Protocol):
    """Where JobSets, Jobs and runtimes are looked up.

    Each method returns None when there is no such object, and raises `LookupFailedError` when that
    cannot be known. `timeout` is in seconds.
    """

    def cached_jobset(self, *, namespace: str, name: str) -> Workload | None:
        """Give the JobSet as last seen by the watch, without asking anybody."""

    def live_jobset(self, *, namespace: str, name: str, timeout: float) -> Workload | None:
        """Ask the API server for the JobSet."""

    def live_job(self, *, namespace: str, name: str, timeout: float) -> Workload | None:
        """Ask the API server for the Job."""

    def runtime(
        self, *, kind: RuntimeKind, namespace: str, name: str, timeout: float
    ) -> raw.JsonObject | None:
        """Ask the API server for a runtime; those of the whole cluster have no namespace."""

    def namespace_labels(self, *, name: str, timeout: float) -> Mapping[str, str] | None:
        """Give the labels of a namespace, a few seconds old at most."""


class StaticReader:
    """Answers from values that were handed over: for files, examples and tests."""

    def __init__(
        self,
        workloads: Iterable[Workload] = (),
        *,
        runtimes: Iterable[raw.JsonObject] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._workloads = {(item.kind, item.namespace, item.name): item for item in workloads}
        self._runtimes = {_key(item): item for item in runtimes}
        self._namespaces = namespaces or {}

    def cached_jobset(self, *, namespace: str, name: str) -> Workload | None:
        """Give the JobSet of this name, if it was handed over."""
        return self._workloads.get(("JobSet", namespace, name))

    def live_jobset(self, *, namespace: str, name: str, timeout: float) -> Workload | None:  # noqa: ARG002 - the protocol's signature
        """Give the JobSet of this name, if it was handed over."""
        return self.cached_jobset(namespace=namespace, name=name)

    def live_job(self, *, namespace: str, name: str, timeout: float) -> Workload | None:  # noqa: ARG002 - the protocol's signature
        """Give the Job of this name, if it was handed over."""
        return self._workloads.get(("Job", namespace, name))

    def runtime(
        self,
        *,
        kind: RuntimeKind,
        namespace: str,
        name: str,
        timeout: float,  # noqa: ARG002 - the protocol's signature
    ) -> raw.JsonObject | None:
        """Give the runtime of this name, if it was handed over."""
        return self._runtimes.get((kind, namespace, name))

    def namespace_labels(self, *, name: str, timeout: float) -> Mapping[str, str] | None:  # noqa: ARG002 - the protocol's signature
        """Give the labels of this namespace, if they were handed over."""
        return self._namespaces.get(name)


def _key(runtime: raw.JsonObject) -> tuple[str, str, str]:
    kind, metadata = raw.text(runtime.get("kind")), raw.mapping(runtime.get("metadata"))
    namespace = "" if kind == "ClusterTrainingRuntime" else raw.text(metadata.get("namespace"))
    return kind, namespace, raw.text(metadata.get("name"))
