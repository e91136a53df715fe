"""What `tfadmit show` adds to a job: what it runs, where its data are, its tasks, its events."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfadmit_client.watch import event, reason, task, why_pending
from tfadmit_client.watch.job import Job
from tfadmit_client.watch.seen import Seen
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_EVENTS = 10
# Of the Job controller, with the pod, its exit code or its condition.
_ENDS_OF_JOBS = ("PodFailurePolicy", "BackoffLimitExceeded", "DeadlineExceeded")


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One task of a job and its pod."""

    name: str
    phase: str
    reason: str
    node: str
    pod: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the program comes from, as `tfadmit run` noted it."""

    code: str = ""
    """The sha256 of the archive."""

    commit: str = ""
    dirty: bool | None = None
    """Whether files differed from the commit."""


@dataclass(frozen=True, kw_only=True)
class Detail:
    """All there is to know of one job."""

    job: Job
    image: str = ""
    command: tuple[str, ...] = ()
    source: Source = field(default_factory=Source)
    data: tuple[str, ...] = ()
    output: str = ""
    restarted: str = ""
    """Why all tasks were started again the last time."""

    replicas: Sequence[Replica] = ()
    events: Sequence[event.Event] = ()

    @property
    def command_line(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.command)


def detail(seen: Seen, job: Job) -> Detail:
    """Look at everything about a job that has been decided."""
    notes = annotations(seen)
    output = output_base(seen)
    data = notes.get(contract.DATA_ANNOTATION, "").replace(",", "\n").splitlines()
    return Detail(
        job=job,
        image=_image(seen),
        command=_command(seen, notes),
        source=_source(notes),
        data=tuple(line.strip() for line in data if line.strip()),
        output=f"{output.rstrip('/')}/{seen.name}/" if output else "",
        restarted=_restarted(seen),
        replicas=[_replica(item, seen) for item in task.tasks(seen)],
        events=_telling(seen),
    )


def safe(seen: Seen, job: Job) -> Detail:
    """Look at everything; of an object that makes no sense, only at what has been decided."""
    try:
        return detail(seen, job)
    except Exception:  # noqa: BLE001 - the job itself says `Unknown`, and why
        return Detail(job=job)


def output_base(seen: Seen) -> str:
    """Give the URI below which the results of jobs are saved; empty for none."""
    return annotations(seen).get(contract.OUTPUT_ANNOTATION, "")


def annotations(seen: Seen) -> Mapping[str, str]:
    """Give all annotations of tfadmit that a job's objects carry; a patch's win over the rest."""
    found: dict[str, str] = {}
    for part in (
        seen.jobset,
        {"metadata": raw.at(seen.trainjob, ("metadata",))},
        seen.trainjob,
    ):
        for item in _annotated(part):
            found |= {
                name: value for name, value in item.items() if name.startswith(contract.PREFIX)
            }
    return found


def _annotated(value: object) -> Iterator[dict[str, str]]:
    """Give each `annotations` within a value, at any depth: releases of Trainer differ in where."""
    if isinstance(value, dict):
        yield raw.strings(value.get("annotations"))
        for item in value.values():
            yield from _annotated(item)
    elif isinstance(value, list):
        for item in value:
            yield from _annotated(item)


def _command(seen: Seen, notes: Mapping[str, str]) -> tuple[str, ...]:
    stated = _json(notes.get(contract.COMMAND_ANNOTATION, ""))
    if isinstance(stated, list) and all(isinstance(word, str) for word in stated):
        return tuple(stated)
    trainer = raw.mapping(raw.at(seen.trainjob, ("spec", "trainer")))
    for holder in (trainer, _node(seen)):
        words = [*raw.sequence(holder.get("command")), *raw.sequence(holder.get("args"))]
        if words:
            return tuple(map(str, words))
    return ()


def _image(seen: Seen) -> str:
    trainer = raw.mapping(raw.at(seen.trainjob, ("spec", "trainer")))
    return raw.text(trainer.get("image")) or raw.text(_node(seen).get("image"))


def _node(seen: Seen) -> raw.JsonObject:
    """Give the container of the trainer step, which Trainer calls `node`."""
    path = ("template", "spec", "template", "spec", "containers")
    for job in raw.sequence(raw.at(seen.jobset, ("spec", "replicatedJobs"))):
        for item in map(raw.mapping, raw.sequence(raw.at(job, path))):
            if item.get("name") == "node":
                return item
    return {}


def _source(notes: Mapping[str, str]) -> Source:
    stated = raw.mapping(_json(notes.get(contract.SOURCE_ANNOTATION, "")))
    dirty = stated.get("dirty")
    return Source(
        code=notes.get(contract.CODE_ANNOTATION, ""),
        commit=raw.text(stated.get("commit")),
        dirty=dirty if isinstance(dirty, bool) else None,
    )


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _replica(item: task.Task, seen: Seen) -> Replica:
    found: reason.Reason | None = why_pending.one(item, seen)
    waiting = next((entry.waiting for entry in item.containers if entry.waiting), "")
    phase = "Deleting" if item.leaving else waiting or item.phase or "-"
    return Replica(
        name=item.name,
        phase=phase,
        reason=found.text if found else "",
        node=item.node,
        pod=raw.text(raw.at(item.pod, ("metadata", "name"))),
        attempt=task.attempt(item.pod) if item.pod else seen.attempt,
    )


def _restarted(seen: Seen) -> str:
    found = event.latest(seen.events, kind="Job", reasons=_ENDS_OF_JOBS)
    return found.message if found and seen.attempt else ""


def _telling(seen: Seen) -> Sequence[event.Event]:
    """Give the last events that explain something: warnings, and all about the job itself."""
    told: dict[tuple[str, str], event.Event] = {}
    for item in seen.events:
        if item.warning or item.kind in ("TrainJob", "JobSet", "Workload"):
            told.pop((item.reason, item.message), None)
            told[item.reason, item.message] = item
    return list(told.values())[-_EVENTS:]
