"""A job as lists show it and programs read it: one value with everything decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfadmit_client.watch import condition, reason, state, task, when, why
from tfadmit_client.watch.seen import Seen
from tfadmit_webhook import raw


@dataclass(frozen=True, kw_only=True)
class Count:
    """How the tasks of one role stand."""

    tasks: int
    running: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A TrainJob, its state and the line that explains it."""

    namespace: str
    name: str
    state: state.State
    reason: reason.Reason
    attempt: int = 0
    """How often JobSet has started all tasks again."""

    runtime: str = ""
    queue: str = ""
    created: str = ""
    """RFC 3339, as the API server wrote it."""

    ended: str = ""
    roles: Mapping[str, Count] = field(default_factory=dict)
    progress: int | None = None
    """In percent, as the program reported it to Trainer."""

    remaining: int | None = None
    """Seconds, by the program's own guess."""

    metrics: Mapping[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        """How many tasks there are in all roles."""
        return sum(item.tasks for item in self.roles.values())

    @property
    def running(self) -> int:
        """How many tasks run now."""
        return sum(item.running for item in self.roles.values())


def job(seen: Seen) -> Job:
    """Decide everything about a job."""
    found = task.tasks(seen)
    now = state.state(seen, found)
    trainer = raw.mapping(raw.at(seen.trainjob, ("status", "trainerStatus")))
    return Job(
        namespace=seen.namespace,
        name=seen.name,
        state=now,
        reason=why.why(seen, now, found),
        attempt=seen.attempt,
        runtime=raw.text(raw.at(seen.trainjob, ("spec", "runtimeRef", "name"))),
        queue=seen.queue,
        created=raw.text(raw.at(seen.trainjob, ("metadata", "creationTimestamp"))),
        ended=_ended(seen),
        roles=_roles(found),
        progress=_number(trainer.get("progressPercentage")),
        remaining=_number(trainer.get("estimatedRemainingSeconds")),
        metrics=_metrics(trainer),
    )


def safe(seen: Seen) -> Job:
    """Decide everything about a job; one that cannot be read is `Unknown` and no exception.

    A list of jobs is worth more than the traceback of the worst one among them.
    """
    try:
        return job(seen)
    except Exception as error:  # noqa: BLE001 - one job never ends a list
        text = f"it cannot be read: {type(error).__name__}: {error}"
        return Job(
            namespace=seen.namespace,
            name=seen.name,
            state=state.State(word="Unknown"),
            reason=reason.Reason(code="unknown", text=text),
            created=raw.text(raw.at(seen.trainjob, ("metadata", "creationTimestamp"))),
        )


def word(seen: Seen) -> state.Word:
    """Decide the state only; `Unknown` for a job that cannot be read."""
    try:
        return state.state(seen, task.tasks(seen)).word
    except Exception:  # noqa: BLE001 - as in `safe`
        return "Unknown"


def age(item: Job, *, now: float) -> str:
    """Write how old a job is."""
    created = when.seconds(item.created)
    return when.length(now - created) if created is not None else "-"


def _ended(seen: Seen) -> str:
    marks = (
        condition.held(seen.trainjob, "Complete"), condition.held(seen.trainjob, "Failed"),
        condition.held(seen.jobset, "Completed"), condition.held(seen.jobset, "Failed"),
    )  # fmt: skip
    return next((raw.text(mark.get("lastTransitionTime")) for mark in marks if mark), "")


def _roles(tasks: list[task.Task]) -> Mapping[str, Count]:
    found: dict[str, list[task.Task]] = {}
    for item in tasks:
        found.setdefault(item.role, []).append(item)
    return {
        role: Count(
            tasks=len(items),
            running=sum(item.is_running and not item.leaving for item in items),
            succeeded=sum(item.phase == "Succeeded" for item in items),
            failed=sum(item.phase == "Failed" for item in items),
        )
        for role, items in found.items()
    }


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _metrics(trainer: raw.JsonObject) -> Mapping[str, str]:
    items = map(raw.mapping, raw.sequence(trainer.get("metrics")))
    return {
        raw.text(item.get("name")): str(item.get("value")) for item in items if item.get("name")
    }
