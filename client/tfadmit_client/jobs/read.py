"""Everything about the jobs of a cluster, read in as few requests as there are kinds.

Over the protocol `Cluster`, which `live_jobs` implements. What a user may not read is a gap with a
sentence, and the jobs are told by what is left; only TrainJobs themselves must be readable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.watch import belong, event, job, seen
from tfadmit_trainer import contract
from tfadmit_webhook import raw, trainjob

# In these states events tell why.
_UNTOLD = frozenset({"Pending", "Restarting", "Failed", "Suspended"})


class Cluster(Protocol):
    """Where objects come from."""

    default_namespace: str
    flags: str
    """Options that reach this very cluster, each after a space; none for the context in use."""

    def objects(
        self, kind: listing.Kind, *, namespace: str | None, **selectors: str
    ) -> Iterator[raw.JsonObject]:
        """Give all objects of a kind, of one namespace or of all.

        Raises:
            ReadError: the rest cannot be read, and why.
        """

    def get(self, kind: listing.Kind, *, namespace: str, name: str) -> raw.JsonObject | None:
        """Give an object; None when there is none.

        Raises:
            ReadError: it cannot be read, and why.
        """

    def version_of(self, group: str) -> str:
        """Give the version in which a group of the API is served; empty when it is not."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Jobs by namespace and name, and what could not be read of them."""

    jobs: Sequence[seen.Seen]
    gaps: Sequence[str] = field(default=())


def everything(cluster: Cluster, *, namespace: str | None) -> Reading:
    """Read all jobs of one namespace, or of all.

    Raises:
        ClientError: TrainJobs cannot be read.
        UnreachableError: nobody answers.
    """
    gather = _Gather(cluster, namespace=namespace)
    found = sorted(gather.must(kinds.TRAINJOB), key=seen.key)
    if not found:
        return Reading(jobs=())
    gather.parts(found)
    return gather.reading(found)


def one(cluster: Cluster, *, namespace: str, name: str, events: bool = True) -> Reading:
    """Read one job; without events where they are not needed. No job when there is none.

    Raises:
        ClientError: TrainJobs cannot be read.
        UnreachableError: nobody answers.
    """
    gather = _Gather(cluster, namespace=namespace, name=name)
    try:
        found = cluster.get(kinds.TRAINJOB, namespace=namespace, name=name)
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        raise fault.ClientError(str(error)) from error
    if found is None:
        return Reading(jobs=())
    gather.parts([found], events=events, all_events=True)
    return gather.reading([found])


class _Gather:
    """What has been read so far."""

    def __init__(self, cluster: Cluster, *, namespace: str | None, name: str = "") -> None:
        self._cluster = cluster
        self._namespace = namespace
        label = contract.JOBSET_NAME_LABEL
        self._selector = f"{label}={name}" if name else label
        self._name = name
        self._gaps: list[str] = []
        self._parts = belong.Parts(flags=cluster.flags)

    def must(self, kind: listing.Kind) -> list[raw.JsonObject]:
        """Read all of a kind without which there is nothing to say."""
        try:
            return list(self._cluster.objects(kind, namespace=self._namespace))
        except listing.UnreachableError:
            raise
        except listing.ReadError as error:
            raise fault.ClientError(str(error)) from error

    def parts(
        self, jobs: Sequence[raw.JsonObject], *, events: bool = True, all_events: bool = False
    ) -> None:
        """Read what belongs to the jobs."""
        named = {"fieldSelector": f"metadata.name={self._name}"} if self._name else {}
        pods = self._may(kinds.POD, labelSelector=self._selector)
        self._parts = belong.Parts(
            jobsets=self._may(kinds.JOBSET, **named) or (),
            jobs=self._may(kinds.JOB, labelSelector=self._selector) or (),
            pods=pods or (),
            pods_known=pods is not None,
            workloads=self._workloads(jobs),
            flags=self._cluster.flags,
        )
        if events and (all_events or self._untold(jobs)):
            only = {} if all_events else {"fieldSelector": "type=Warning"}
            told = self._may(kinds.EVENT, **only) or ()
            self._parts = _with(self._parts, events=[event.parse(item) for item in told])
        self._parts = _with(self._parts, gone=self._gone(jobs))

    def reading(self, jobs: Sequence[raw.JsonObject]) -> Reading:
        """Give the jobs with all that belongs to each."""
        index = belong.Index(self._parts)
        return Reading(jobs=tuple(map(index.seen, jobs)), gaps=tuple(self._gaps))

    def _may(self, kind: listing.Kind, **selectors: str) -> list[raw.JsonObject] | None:
        """Read all of a kind; None, and a gap, when it may not be read."""
        try:
            return list(self._cluster.objects(kind, namespace=self._namespace, **selectors))
        except listing.UnreachableError:
            raise
        except listing.ReadError as error:
            self._gaps.append(str(error))
            return None

    def _workloads(self, jobs: Sequence[raw.JsonObject]) -> Sequence[raw.JsonObject]:
        """Read Kueue's objects, when a job is in a queue."""
        labels = (raw.strings(raw.at(item, ("metadata", "labels"))) for item in jobs)
        if not any(contract.QUEUE_LABEL in item for item in labels):
            return ()
        try:
            version = self._cluster.version_of(kinds.KUEUE)
        except listing.UnreachableError:
            raise
        except listing.ReadError as error:
            self._gaps.append(str(error))
            return ()
        return (self._may(kinds.workload(version)) or ()) if version else ()

    def _untold(self, jobs: Sequence[raw.JsonObject]) -> bool:
        """Whether there is a job that events may explain."""
        index = belong.Index(self._parts)
        return any(job.word(index.seen(item)) in _UNTOLD for item in jobs)

    def _gone(self, jobs: Sequence[raw.JsonObject]) -> frozenset[trainjob.Reference]:
        """Look for the runtimes of jobs that have no JobSet: the others have found theirs."""
        have = {seen.key(item) for item in self._parts.jobsets}
        wanted = {
            trainjob.reference(item, namespace=seen.key(item)[0])
            for item in jobs
            if seen.key(item) not in have
        }
        return frozenset(item for item in wanted if item and self._is_gone(item))

    def _is_gone(self, reference: trainjob.Reference) -> bool:
        try:
            kind = kinds.RUNTIMES[reference.kind]
            found = self._cluster.get(kind, namespace=reference.namespace, name=reference.name)
        except listing.UnreachableError:
            raise
        except listing.ReadError:
            return False  # whether it is there is not known, and not asked for
        return found is None


def _with(parts: belong.Parts, **changes: object) -> belong.Parts:
    return belong.Parts(**{**vars(parts), **changes})
