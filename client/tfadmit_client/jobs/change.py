"""Stopping and starting jobs, each with the right answer when it is so already.

Over the protocol `Cluster`, which `live_jobs` implements. A job in a queue of Kueue is stopped and
started through its Workload: Kueue itself sets `spec.suspend`, and would set it back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.jobs import find, read
from tfadmit_client.watch import job, seen
from tfadmit_webhook import raw


class Cluster(read.Cluster, Protocol):
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
    again = f"tfadmit start -n {target.namespace}{cluster.flags} {target.name}"
    return f"{target.name} is stopping; `{again}` lets it go on"


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
            f"`tfadmit run -n {target.namespace}{cluster.flags} --from {target.name}` repeats it"
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


def _look(cluster: Cluster, target: Target) -> tuple[seen.Seen, job.Job]:
    reading = find.one(cluster, namespace=target.namespace, name=target.name)
    (found,) = reading.jobs
    return found, job.safe(found)


def _is_stopped(found: seen.Seen) -> bool:
    """Whether a user has stopped the job; in a queue, Kueue suspends what it has not admitted."""
    if found.workload is not None:
        return raw.at(found.workload, ("spec", "active")) is False
    return found.suspended


def _set_suspend(cluster: Cluster, target: Target, *, suspend: bool) -> None:
    patched = changed(
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
    patched = changed(
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


def changed(change: Callable[[], raw.JsonObject | None], name: str) -> raw.JsonObject | None:
    """Change an object; None when there is none.

    Raises:
        ClientError: it is refused.
        UnreachableError: nobody answers.
    """
    try:
        return change()
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        raise fault.ClientError(f"{name}: {error}") from error
