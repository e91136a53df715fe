"""Removing jobs with all that belongs to them, as often as one likes.

The deletion is the API server's (`live_jobs` says in which order); here it is waited for, and what
is still left is told.
"""

import time
from collections.abc import Callable

from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.jobs import change, option, read
from tfadmit_client.watch import belong, seen
from tfadmit_trainer import contract
from tfadmit_webhook import raw

# A job is looked at so often while its pods end.
_POLL_SECONDS = 1.0
# Above the grace period of the shipped runtimes, 120 s, in which programs write a last checkpoint.
WAIT_SECONDS = 300.0


def remove(
    cluster: change.Cluster,
    target: change.Target,
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
    before = read.one(cluster, **vars(target), events=False).jobs
    deleted = change.changed(lambda: cluster.delete(kinds.TRAINJOB, **vars(target)), target.name)
    if deleted is None or not before:
        option.check_namespace(cluster, target.namespace)
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


def _left(cluster: change.Cluster, before: seen.Seen) -> str:
    """Say what is left of a job; empty when all that can be seen is gone."""
    where = {"namespace": before.namespace, "name": before.name}
    try:
        now = cluster.get(kinds.TRAINJOB, **where)
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        return str(error)
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


def _visible(
    cluster: change.Cluster, kind: listing.Kind, before: seen.Seen
) -> list[raw.JsonObject]:
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
