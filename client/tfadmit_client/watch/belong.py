"""Which objects of the cluster's lists belong to which TrainJob.

A TrainJob, its JobSet and the JobSet's pods are found by name, as Trainer and JobSet make them, and
then compared by uid: what is left of an earlier job of the same name is not this job's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tfadmit_client.watch import event, when
from tfadmit_client.watch.seen import Key, Seen, key, uid
from tfadmit_trainer import contract
from tfadmit_webhook import raw, trainjob

_KINDS = ("TrainJob", "JobSet", "Job", "Pod", "Workload")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Objects as the lists of the API server give them."""

    jobsets: Sequence[raw.JsonObject] = ()
    jobs: Sequence[raw.JsonObject] = ()
    pods: Sequence[raw.JsonObject] = ()
    events: Sequence[event.Event] = ()
    workloads: Sequence[raw.JsonObject] = ()
    pods_known: bool = True
    gone: frozenset[trainjob.Reference] = frozenset()
    """Runtimes that are known not to be there."""

    flags: str = ""
    """What reaches this very cluster by a command line, each option after a space."""


class Index:
    """Parts by the job that they belong to."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._jobsets = {key(item): item for item in parts.jobsets}
        self._jobs = _by_jobset(parts.jobs)
        self._pods = _by_jobset(parts.pods)
        self._workloads = {owner: item for item in parts.workloads for owner in owners(item)}
        self._events: dict[str, list[event.Event]] = defaultdict(list)
        for item in parts.events:
            self._events[item.uid or _named(item)].append(item)
            if item.uid and item.kind == "Job":
                self._events[_named(item)].append(item)

    def seen(self, job: raw.JsonObject) -> Seen:
        """Give what is known of a TrainJob."""
        identity = key(job)
        jobset = self._jobsets.get(identity)
        stranger = jobset is not None and uid(job) not in owners(jobset)
        if stranger:
            jobset = None
        jobs = () if stranger else self._jobs.get(identity, ())
        pods = () if stranger else self._pods.get(identity, ())
        pods = [item for item in pods if of_jobset(item, jobset)]
        workload = self._workloads.get(uid(job)) or self._workloads.get(uid(jobset))
        parts = [job, *jobs, *pods, *(item for item in (jobset, workload) if item)]
        return Seen(
            trainjob=job,
            jobset=jobset,
            stranger=stranger,
            jobs=jobs,
            pods=pods,
            pods_known=self._parts.pods_known,
            events=sorted(self._about(parts, job), key=lambda item: item.at),
            workload=workload,
            flags=self._parts.flags,
            runtime_gone=trainjob.reference(job, namespace=identity[0]) in self._parts.gone,
        )

    def _about(
        self, objects: Iterable[raw.JsonObject], job: raw.JsonObject
    ) -> Iterator[event.Event]:
        """Give events by uid; those without one, and about Jobs, by name.

        JobSet makes a Job of the same name anew for each attempt, and what ended the one before
        is told of that one.
        """
        created = when.seconds(raw.text(raw.at(job, ("metadata", "creationTimestamp")))) or 0.0
        given: set[int] = set()
        for item in objects:
            # lists leave out the kind of their items
            names = [f"{kind} {'/'.join(key(item))}" for kind in _KINDS]
            for found in (
                found for name in (uid(item), *names) for found in self._events.get(name, ())
            ):
                if id(found) not in given and found.at >= created:
                    given.add(id(found))
                    yield found


def _named(item: event.Event) -> str:
    return f"{item.kind} {item.namespace}/{item.name}"


def _by_jobset(items: Iterable[raw.JsonObject]) -> dict[Key, list[raw.JsonObject]]:
    found: dict[Key, list[raw.JsonObject]] = defaultdict(list)
    for item in items:
        labels = raw.strings(raw.at(item, ("metadata", "labels")))
        if name := labels.get(contract.JOBSET_NAME_LABEL):
            found[key(item)[0], name].append(item)
    return found


def of_jobset(pod: raw.JsonObject, jobset: raw.JsonObject | None) -> bool:
    """Whether a pod is of this JobSet, and not of an earlier one of its name."""
    annotations = raw.strings(raw.at(pod, ("metadata", "annotations")))
    stated = annotations.get(contract.JOBSET_UID_ANNOTATION, "")
    return not (stated and jobset) or stated == uid(jobset)


def owners(content: raw.JsonObject) -> list[str]:
    """Give the uids of what owns an object."""
    owners = map(raw.mapping, raw.sequence(raw.at(content, ("metadata", "ownerReferences"))))
    return [raw.text(owner.get("uid")) for owner in owners]
