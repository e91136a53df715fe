"""The annotation `tfadmit.dev/replicas`: its text, and the sizes of replicated jobs that follow.

Pure. `ps=2,evaluator=0` states tasks by role; 0 takes the role away. What cannot be done is refused
with the way out. The same for a JobSet and for a TrainJob that is judged before it has one.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract, pattern
from tfadmit_webhook import runtime
from tfadmit_webhook.decision import Reason, Refusal

_SINGLE: tuple[contract.Role, ...] = ("chief", "evaluator")
_ALIASES: Mapping[str, contract.Role] = {
    **{role: role for role in contract.ROLES},
    "master": "chief",
}
_EXAMPLE = f'{contract.REPLICAS_ANNOTATION}: "ps=2,evaluator=0"'


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many pods a replicated job has: so many Jobs of so many completions."""

    replicas: int
    completions: int

    @property
    def total(self) -> int:
        """How many pods."""
        return self.replicas * self.completions


Wanted = Mapping[contract.Role, int]
Sizes = Mapping[str, Size]


def parse(text: str) -> Wanted | Refusal:
    """Read the annotation's text; nothing in it says nothing."""
    wanted: dict[contract.Role, int] = {}
    for word in (part.strip() for part in text.split(",") if text.strip()):
        name, equals, number = (piece.strip() for piece in word.partition("="))
        role = _ALIASES.get(name)
        if not equals or not name:
            return _refuse(text, f"{word!r} is not role=number; write {_EXAMPLE}")
        if role is None:
            return _refuse(text, f"there is no role {name!r}; use {', '.join(contract.ROLES)}")
        if role in wanted:
            return _refuse(text, f"it states {role} twice; state it once")
        count = _count(number)
        if count is None:
            what = f"{number!r} is no number of tasks from 0 to {pattern.MAX_TASKS:,}"
            return _refuse(text, f"{what}; write {role}=1")
        if role in _SINGLE and count > 1:
            return _refuse(text, f"TensorFlow allows one {role}; write {role}=1")
        wanted[role] = count
    return wanted


def sizes(jobs: Sequence[runtime.Job], wanted: Wanted, *, text: str) -> Sizes | Refusal:
    """Give the size of each replicated job of a stated role, by name.

    `jobs` are those whose pods are tasks. The size of Trainer's own step is never changed: it is
    `numNodes`.
    """
    found: dict[str, Size] = {}
    for role, count in wanted.items():
        own = [job for job in jobs if job.group.role == role]
        sized = _role(own, role, count, known=sorted({job.group.role for job in jobs}), text=text)
        if isinstance(sized, Refusal):
            return sized
        found |= sized
    return _checked(jobs, found, text=text) if found else found


def resized(jobs: Sequence[runtime.Job], found: Sizes) -> tuple[runtime.Job, ...]:
    """Give the replicated jobs with these sizes, without those that are taken away."""
    return tuple(
        _with_size(job, found[job.name]) if job.name in found else job
        for job in jobs
        if job.name not in found or found[job.name].total
    )


def _with_size(job: runtime.Job, size: Size) -> runtime.Job:
    group = dataclasses.replace(job.group, replicas=size.replicas, completions=size.completions)
    return dataclasses.replace(job, group=group)


def _role(
    own: Sequence[runtime.Job], role: contract.Role, count: int, *, known: Iterable[str], text: str
) -> Sizes | Refusal:
    present = sum(job.group.size for job in own)
    if count == present:
        return {job.name: present_size(job) for job in own}
    if not own:
        have = ", ".join(known) or "none"
        return _refuse(
            text,
            f"no replicated job has the role {role} (there are: {have}); leave {role} out, or use "
            "a runtime that has such a job",
        )
    if any(job.step == runtime.TRAINER_STEP for job in own):
        return _refuse(
            text,
            f"the role {role} has {present} tasks by numNodes, not {count}: set "
            f"spec.trainer.numNodes of the TrainJob, and leave {role} out here",
        )
    if count == 0:
        return {job.name: Size(replicas=0, completions=0) for job in own}
    return _resized(own, role, count, text=text)


def _resized(
    own: Sequence[runtime.Job], role: contract.Role, count: int, *, text: str
) -> Sizes | Refusal:
    """Keep the form: one Job gets more completions, many Jobs become more Jobs."""
    if len(own) > 1:
        names = ", ".join(job.name for job in own)
        return _refuse(
            text,
            f"the role {role} has several replicated jobs ({names}), and nothing says which of "
            f"them gets how many of {count} tasks; state their parallelism in the runtime",
        )
    (job,) = own
    if job.group.replicas <= 1:
        return {job.name: Size(replicas=1, completions=count)}
    each = job.group.completions or 1
    if count % each:
        return _refuse(
            text,
            f"the Jobs of {job.name!r} have {each} tasks each, and {count} is no multiple of it; "
            f"write {role}={count + each - count % each}",
        )
    return {job.name: Size(replicas=count // each, completions=each)}


def _checked(jobs: Sequence[runtime.Job], found: Sizes, *, text: str) -> Sizes | Refusal:
    """Refuse what leaves a cluster that nobody trains in, or one that is too big."""
    totals = dict.fromkeys(contract.ROLES, 0)
    for job in jobs:
        size = found.get(job.name, present_size(job))
        totals[job.group.role] += size.total
    if not totals["worker"] and not totals["chief"]:
        return _refuse(text, "nobody would be left who trains; keep a worker or the chief")
    if sum(totals.values()) > pattern.MAX_TASKS:
        return _refuse(
            text,
            f"{sum(totals.values()):,} tasks are more than {pattern.MAX_TASKS:,}; ask for less",
        )
    return found


def present_size(job: runtime.Job) -> Size:
    """Give the size that a replicated job has."""
    return Size(replicas=job.group.replicas, completions=job.group.completions)


def _count(word: str) -> int | None:
    # isdigit alone accepts digits of other scripts
    if not (word.isascii() and word.isdigit()) or len(word) > 9:
        return None
    return int(word) if int(word) <= pattern.MAX_TASKS else None


def _refuse(text: str, why: str) -> Refusal:
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return Refusal(
        reason=Reason.ANNOTATION_INVALID,
        message=f"annotation {contract.REPLICAS_ANNOTATION} is {shown!r}: {why}",
    )
