"""The one true state of a job: the same word in every command.

Taken from conditions with status True, from `spec.suspend` and from pods, in this order, so that a
condition that no longer holds, or a controller that has not looked yet, never decides.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tfadmit_client.watch import condition
from tfadmit_client.watch.seen import Seen
from tfadmit_client.watch.task import Task
from tfadmit_webhook import raw

Word = Literal[
    "Pending", "Running", "Restarting", "Suspended", "Succeeded", "Failed", "Deleting", "Unknown"
]
ENDED: frozenset[Word] = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, kw_only=True)
class State:
    """What a job is doing."""

    word: Word
    restarts: int = 0
    """How often tasks were started again: all together, a Job by itself, or in place."""

    @property
    def text(self) -> str:
        """For people: `Restarting(2)`, and the word for all others."""
        return f"{self.word}({self.restarts})" if self.word == "Restarting" else self.word


def state(seen: Seen, tasks: Sequence[Task]) -> State:
    """Find the state."""
    in_place = max((task.restarts for task in tasks), default=0)
    restarts = seen.attempt + in_place + _job_restarts(seen)
    return State(word=_word(seen, tasks, restarts), restarts=restarts)


def verdict(seen: Seen) -> raw.JsonObject | None:
    """Give the condition with which the job has failed: the TrainJob's, else its JobSet's."""
    return condition.held(seen.trainjob, "Failed") or condition.held(seen.jobset, "Failed")


def _job_restarts(seen: Seen) -> int:
    """How often a single Job was started again by JobSet, or replaced a pod by itself."""
    statuses = raw.sequence(raw.at(seen.jobset, ("status", "replicatedJobsStatus")))
    counts = [
        raw.count(count, default=0)
        for item in statuses
        for count in raw.sequence(raw.mapping(item).get("jobRestarts"))
    ]
    # Of a Job that has failed, the last pod was not replaced any more.
    going = (item for item in seen.jobs if not condition.held(item, "Failed"))
    failed = (raw.count(raw.at(item, ("status", "failed")), default=0) for item in going)
    return max(counts, default=0) + max(failed, default=0)


def _word(seen: Seen, tasks: Sequence[Task], restarts: int) -> Word:
    if seen.leaving:
        return "Deleting"
    # Trainer copies both from the JobSet, a moment later.
    if condition.held(seen.trainjob, "Complete") or condition.held(seen.jobset, "Completed"):
        return "Succeeded"
    if verdict(seen):
        return "Failed"
    if seen.suspended:
        return "Suspended"
    if _is_under_way(seen, tasks):
        return "Running"
    return "Restarting" if restarts else "Pending"


def _is_under_way(seen: Seen, tasks: Sequence[Task]) -> bool:
    """Whether all tasks run, or did: TensorFlow trains nothing before the last one is there."""
    if not seen.pods_known or not (seen.jobset or seen.pods):
        return _is_counted_ready(raw.sequence(raw.at(seen.trainjob, ("status", "jobsStatus"))))
    done = _done(seen.jobs)
    return bool(tasks) and all(
        has_begun(task) or (task.pod is None and done.get(task.replicated_job)) for task in tasks
    )


def has_begun(task: Task) -> bool:
    """Whether the task's program runs, or ran to an end.

    A pod that is being deleted is one of a stopped job, whose program will begin anew; but one that
    the cluster takes away, from a lost node for one, runs until it is replaced.
    """
    runs = task.is_running and (not task.leaving or task.disruption is not None)
    return runs or task.phase in ("Succeeded", "Failed")


def _is_counted_ready(jobs: Iterable[object]) -> bool:
    """Whether by Trainer's counts all jobs are ready or done: the pods may be out of sight."""
    counted = [raw.mapping(item) for item in jobs]
    return bool(counted) and all(
        sum(raw.count(item.get(name), default=0) for name in ("ready", "succeeded"))
        for item in counted
    )


def _done(jobs: Iterable[raw.JsonObject]) -> dict[str, bool]:
    """Which replicated jobs have completed; their pods may be cleaned away."""
    found: dict[str, bool] = {}
    for item in jobs:
        labels = raw.strings(raw.at(item, ("metadata", "labels")))
        name = labels.get("jobset.sigs.k8s.io/replicatedjob-name", "")
        found[name] = found.get(name, True) and condition.held(item, "Complete") is not None
    return found
