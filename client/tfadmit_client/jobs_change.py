"""Stopping, starting and removing jobs, each with the right answer when it is so already.

Over the protocol `Cluster`, which `live_jobs` implements. A job in a queue of Kueue is stopped and
started through its Workload: Kueue itself sets `spec.suspend`, and would set it back.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tfadmit_client import fault, jobs_find, jobs_option, jobs_read, kinds, listing
from tfadmit_client.watch import belong, job, seen
from tfadmit_trainer import contract
from tfadmit_webhook import raw

# A job is looked at so often while its pods end.
_POLL_SECONDS = 1.0
# Above the grace period of the shipped runtimes, 120 s, in which programs write a last checkpoint.
WAIT_SECONDS = 300.0


class Cluster(jobs_read.Cluster, Protocol):
    """Where objects are read and changed."""

    def patch(
        self, kind: listing.Kind, *, namespace: str, name: str, body: Mapping[str, Any]
    ) -> raw.JsonObject | None:
        """Change an object by a merge patch; None when there is none.

        Raises:
            ReadError: it is refused, and why.
        """

    def delete(self, kind: listing.Kind, *, namespace: str, name: str) -> raw.JsonObject | None:
        """Delete an object, and what it owns after it; None when there is none.

        Raises:
            ReadError: it is refused, and why.
        """


@dataclass(frozen=True, kw_only=True)
class Target:
    """A job by its place."""

    namespace: str
    name: str


def stop(cluster: Cluster, target: Target) -> str:
    """Stop a job; it can go on later. Gives what has happened, as a sentence.

    Raises:
        ClientError: there is no such job, or it is refused.
        UnreachableError: nobody answers.
    """
    found, now = _look(cluster, target)
    if now.state.word in ("Succeeded", "Failed"):
        return f"{target.name} has ended ({now.state.word}): there is nothing to stop"
    if now.state.word == "Deleting":
        return f"{target.name} is being deleted: there is nothing to stop"
    if _is_stopped(found):
        return f"{target.name} is stopped already"
    if found.workload is not None:
        _set_active(cluster, found, active=False)
    else:
        _set_suspend(cluster, target, suspend=True)
    return f"{target.name} is stopping; `tfadmit start {target.name}` goes on"


def start(cluster: Cluster, target: Target) -> str:
    """Let a stopped job go on. Gives what has happened, as a sentence.

    Raises:
        ClientError: there is no such job, it cannot go on, or it is refused.
        UnreachableError: nobody answers.
    """
    found, now = _look(cluster, target)
    if now.state.word in ("Succeeded", "Failed"):
        raise fault.ClientError(
            f"{target.name} has ended ({now.state.word}), and a TrainJob runs once: "
            f"`tfadmit run --from {target.name}` repeats it"
        )
    if now.state.word == "Deleting":
        raise fault.ClientError(f"{target.name} is being deleted: it cannot go on")
    if not found.suspended:
        return f"{target.name} is started already ({now.state.text})"
    if found.workload is not None:
        if _is_stopped(found):
            _set_active(cluster, found, active=True)
            return f"{target.name} is back in its queue"
        return f"{target.name} is started already, and {now.reason.text}"
    _set_suspend(cluster, target, suspend=False)
    return f"{target.name} is starting"


def remove(
    cluster: Cluster,
    target: Target,
    *,
    wait: float = WAIT_SECONDS,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Delete a job and all that belongs to it, and wait until it is gone; one that is not is fine.

    Saved results are not touched. Gives what has happened, as a sentence.

    Raises:
        NotGoneError: it is still there after `wait` seconds.
        ClientError: it is refused.
        UnreachableError: nobody answers.
    """
    before = jobs_read.one(cluster, **vars(target), events=False).jobs
    deleted = _changed(lambda: cluster.delete(kinds.TRAINJOB, **vars(target)), target.name)
    if deleted is None or not before:
        jobs_option.check_namespace(cluster, target.namespace)
        return f"{target.name} is not there"
    deadline, told = clock() + wait, ""
    while wait > 0 and (left := _left(cluster, before[0])):
        if clock() >= deadline:
            raise NotGoneError(
                f"{target.name} is not gone after {wait:g} s: {left}; the deletion goes on"
            )
        if left != told:
            told = left
            tell(f"{target.name}: {left}")
        sleep(_POLL_SECONDS)
    return f"{target.name} is {'deleted' if wait > 0 else 'being deleted'}"


class NotGoneError(fault.ClientError):
    """A job takes longer to go than was waited for."""

    code = 1


def _look(cluster: Cluster, target: Target) -> tuple[seen.Seen, job.Job]:
    reading = jobs_find.one(cluster, namespace=target.namespace, name=target.name)
    (found,) = reading.jobs
    return found, job.safe(found)


def _left(cluster: Cluster, before: seen.Seen) -> str:
    """Say what is left of a job; empty when all that can be seen is gone."""
    where = {"namespace": before.namespace, "name": before.name}
    now = cluster.get(kinds.TRAINJOB, **where)
    if now and seen.uid(now) == seen.uid(before.trainjob):
        holders = ", ".join(map(str, raw.sequence(raw.at(now, ("metadata", "finalizers")))))
        return f"the TrainJob waits for {holders}" if holders else "the TrainJob is going"
    owned = [
        pod for pod in _visible(cluster, kinds.POD, before) if belong.of_jobset(pod, before.jobset)
    ]
    if owned:
        return f"{len(owned)} pods are ending" if len(owned) > 1 else "a pod is ending"
    jobsets = _visible(cluster, kinds.JOBSET, before)
    going = any(seen.uid(before.trainjob) in belong.owners(item) for item in jobsets)
    return "the JobSet is going" if going else ""


def _visible(cluster: Cluster, kind: listing.Kind, before: seen.Seen) -> list[raw.JsonObject]:
    """Give pods or JobSets of the job's name, as far as they may be read."""
    selector = (
        {"labelSelector": f"{contract.JOBSET_NAME_LABEL}={before.name}"}
        if kind == kinds.POD
        else {"fieldSelector": f"metadata.name={before.name}"}
    )
    try:
        return list(cluster.objects(kind, namespace=before.namespace, **selector))
    except listing.UnreachableError:
        raise
    except listing.ReadError:
        return []


def _is_stopped(found: seen.Seen) -> bool:
    """Whether a user has stopped the job; in a queue, Kueue suspends what it has not admitted."""
    if found.workload is not None:
        return raw.at(found.workload, ("spec", "active")) is False
    return found.suspended


def _set_suspend(cluster: Cluster, target: Target, *, suspend: bool) -> None:
    patched = _changed(
        lambda: cluster.patch(
            kinds.TRAINJOB,
            namespace=target.namespace,
            name=target.name,
            body={"spec": {"suspend": suspend}},
        ),
        target.name,
    )
    if patched is None:
        raise fault.ClientError(f"{target.name} was deleted in the meantime")


def _set_active(cluster: Cluster, found: seen.Seen, *, active: bool) -> None:
    version = raw.text(raw.mapping(found.workload).get("apiVersion")).partition("/")[2]
    version = version or cluster.version_of(kinds.KUEUE)
    namespace, name = seen.key(raw.mapping(found.workload))
    patched = _changed(
        lambda: cluster.patch(
            kinds.workload(version),
            namespace=namespace,
            name=name,
            body={"spec": {"active": active}},
        ),
        found.name,
    )
    if patched is None:
        raise fault.ClientError(f"Kueue has given up its Workload of {found.name}: try again")


def _changed(change: Callable[[], raw.JsonObject | None], name: str) -> raw.JsonObject | None:
    try:
        return change()
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        raise fault.ClientError(f"{name}: {error}") from error
