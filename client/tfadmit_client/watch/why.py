"""In one line: why a job is in its state.

A reason has a code for machines, one of `Code`, and a sentence for people. What explains a job that
does not run yet is in `why_pending`, what explains one that failed in `why_failed`.
"""

from collections.abc import Sequence

from tfadmit_client.watch import condition, reason, why_failed, why_pending
from tfadmit_client.watch.seen import Seen
from tfadmit_client.watch.state import State, has_begun
from tfadmit_client.watch.task import Task
from tfadmit_webhook import raw


def why(seen: Seen, state: State, tasks: Sequence[Task]) -> reason.Reason:
    """Explain a state; empty where there is nothing to explain."""
    if state.word == "Deleting":
        return _deleting(seen)
    if state.word == "Failed":
        return why_failed.why(seen, tasks)
    if state.word == "Suspended":
        return _suspended(seen)
    if state.word == "Running":
        return why_failed.fault(tasks) or reason.NONE
    if state.word in ("Pending", "Restarting"):
        return why_pending.why(seen, tasks) or _restarting(seen, tasks) or _unseen(tasks)
    return reason.NONE


def _restarting(seen: Seen, tasks: Sequence[Task]) -> reason.Reason | None:
    if found := why_failed.fault(tasks):
        return found
    if mark := condition.held(seen.jobset, "Restarting"):
        said = raw.text(mark.get("message"))
        rule = raw.text(mark.get("reason")).removeprefix("FailurePolicy_")
        return reason.Reason(code="restarting", text=f"started again by rule {rule}: {said}")
    return None


def _unseen(tasks: Sequence[Task]) -> reason.Reason:
    waiting = sum(not has_begun(task) for task in tasks)
    text = f"{waiting} of {len(tasks)} tasks are not running yet" if tasks else "just created"
    return reason.Reason(code="starting", text=text)


def _suspended(seen: Seen) -> reason.Reason:
    # With its place: the list may be of all namespaces, and of another cluster than the usual one.
    start = f"tfadmit start -n {seen.namespace}{seen.flags} {seen.name}"
    if not seen.queue and seen.workload is None:
        return reason.Reason(code="stopped", text=f"stopped; `{start}` lets it go on")
    queue = seen.queue or raw.text(raw.at(seen.workload, ("spec", "queueName")))
    if raw.at(seen.workload, ("spec", "active")) is False:
        return reason.Reason(
            code="stopped",
            text=f"stopped in queue {queue}; `{start}` queues it again",
        )
    said = condition.refused(seen.workload, "QuotaReserved") or condition.refused(
        seen.workload, "Admitted"
    )
    evicted = condition.held(seen.workload, "Evicted")
    found = evicted or said
    text = raw.text(raw.mapping(found).get("message"))
    return reason.Reason(code="queue", text=f"waits in queue {queue}" + (text and f": {text}"))


def _deleting(seen: Seen) -> reason.Reason:
    ending = sum(raw.at(pod, ("status", "phase")) in ("Pending", "Running") for pod in seen.pods)
    if ending:
        text = f"{ending} pod is still ending" if ending == 1 else f"{ending} pods are still ending"
        return reason.Reason(code="deleting", text=text)
    holders = raw.sequence(raw.at(seen.trainjob, ("metadata", "finalizers")))
    names = ", ".join(name for name in holders if isinstance(name, str))
    return reason.Reason(code="deleting", text=names and f"waits for {names}")
