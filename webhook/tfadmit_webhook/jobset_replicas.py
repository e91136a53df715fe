"""The annotation `tfadmit.dev/replicas`: its text, and the sizes of replicated jobs that follow.

Pure. `ps=2,evaluator=0` states tasks by role; 0 takes the role away. What cannot be done comes back
as a fault with the way out. The same for a JobSet, and for a TrainJob before there is one.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract, pattern
from tfadmit_webhook import runtime

_SINGLE: tuple[contract.Role, ...] = ("chief", "evaluator")
_SHOWN = 80
_ROLES: Mapping[str, contract.Role] = {**{role: role for role in contract.ROLES}, "master": "chief"}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How many pods a replicated job has: so many Jobs of so many completions."""

    replicas: int
    completions: int

    @property
    def total(self) -> int:
        """How many pods."""
        return self.replicas * self.completions


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Why the annotation's text cannot be followed."""

    why: str
    fix: str
    text: str = ""
    is_fixed: bool = False
    """Whether the text is fine by itself, and something else has fixed the number."""

    @property
    def what(self) -> str:
        """The end of a sentence that begins with where the text stands."""
        return f"is {shown(self.text)}: {self.why}"


Wanted = Mapping[contract.Role, int]
Sizes = Mapping[str, Size]


def sizes(jobs: Sequence[runtime.Job], text: str) -> Sizes | Fault:
    """Give the size of each replicated job of a stated role, by name.

    `jobs` are those whose pods are tasks. The size of Trainer's own step is never changed: it is
    `numNodes`.
    """
    wanted = _parse(text)
    found: dict[str, Size] = {}
    if isinstance(wanted, Fault):
        return dataclasses.replace(wanted, text=text)
    for role, count in wanted.items():
        sized = _role(jobs, role, count)
        if isinstance(sized, Fault):
            return dataclasses.replace(sized, text=text)
        found |= sized
    fault = _cluster_fault(resized(jobs, found)) if found else None
    return dataclasses.replace(fault, text=text) if fault else found


def resized(jobs: Sequence[runtime.Job], found: Sizes) -> tuple[runtime.Job, ...]:
    """Give the replicated jobs with these sizes, without those that are taken away."""
    return tuple(
        _with_size(job, found[job.name]) if job.name in found else job
        for job in jobs
        if job.name not in found or found[job.name].total
    )


def present_size(job: runtime.Job) -> Size:
    """Give the size that a replicated job has."""
    return Size(replicas=job.group.replicas, completions=job.group.completions)


def shown(text: str) -> str:
    """Quote what a user wrote, which may be very long, in one short line."""
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...")


def _parse(text: str) -> Wanted | Fault:
    wanted: dict[contract.Role, int] = {}
    for word in (part.strip() for part in text.split(",") if text.strip()):
        name, _, number = (piece.strip() for piece in word.partition("="))
        role, count = _ROLES.get(name), _count(number)
        if not name or not number:
            why = f"{shown(word)} is not role=number"
            return Fault(why=why, fix='"ps=2,evaluator=0", for example')
        if role is None:
            return Fault(
                why=f"there is no role {shown(name)}", fix=f"one of {', '.join(contract.ROLES)}"
            )
        if count is None:
            why = f"{shown(number)} is no number of tasks from 0 to {pattern.MAX_TASKS:,}"
            return Fault(why=why, fix=f"{role}=1, for example")
        if role in wanted:
            return Fault(why=f"it states {role} twice", fix=f"state {role} once")
        if role in _SINGLE and count > 1:
            return Fault(why=f"TensorFlow allows one {role}", fix=f"{role}=1")
        wanted[role] = count
    return wanted


def _count(word: str) -> int | None:
    # isdigit alone accepts digits of other scripts
    if not (word.isascii() and word.isdigit()) or len(word) > 9:
        return None
    return int(word) if int(word) <= pattern.MAX_TASKS else None


def _role(jobs: Sequence[runtime.Job], role: contract.Role, count: int) -> Sizes | Fault:
    own = [job for job in jobs if job.group.role == role]
    present = sum(job.group.size for job in own)
    if count == present:
        others = [job for job in own if job.step != runtime.TRAINER_STEP]
        return {job.name: present_size(job) for job in others}
    if not own:
        known = ", ".join(dict.fromkeys(job.group.role for job in jobs)) or "none"
        return Fault(
            why=f"no replicated job has the role {role} (there are: {known})",
            fix=f"leave {role} out, or use a runtime with such a job",
        )
    if any(job.step == runtime.TRAINER_STEP for job in own):
        return Fault(
            why=f"the role {role} has {present} tasks by numNodes, not {count}",
            fix=f"set spec.trainer.numNodes of the TrainJob, and leave {role} out here",
        )
    if count == 0:
        return {job.name: Size(replicas=0, completions=0) for job in own}
    return _resized(own, role, count)


def _resized(own: Sequence[runtime.Job], role: contract.Role, count: int) -> Sizes | Fault:
    """Keep the form: one Job gets more completions, many Jobs become more Jobs."""
    if len(own) > 1:
        names = ", ".join(job.name for job in own)
        return Fault(
            why=(
                f"the role {role} has several replicated jobs ({names}), and nothing says which of "
                f"them gets how many of {count} tasks"
            ),
            fix="state their parallelism in the runtime",
        )
    (job,) = own
    if job.group.replicas <= 1:
        return {job.name: Size(replicas=1, completions=count)}
    each = job.group.completions or 1
    if count % each:
        return Fault(
            why=f"the Jobs of {job.name!r} have {each} tasks each; {count} is no multiple of it",
            fix=f"{role}={count + each - count % each}, for example",
        )
    return {job.name: Size(replicas=count // each, completions=each)}


def _cluster_fault(left: Sequence[runtime.Job]) -> Fault | None:
    """Find a cluster that nobody trains in, or one that is too big."""
    if not any(job.group.size for job in left if job.group.role in ("worker", "chief")):
        return Fault(why="nobody would be left who trains", fix="keep a worker or the chief")
    if (total := sum(job.group.size for job in left)) > pattern.MAX_TASKS:
        why = f"{total:,} tasks are more than {pattern.MAX_TASKS:,}"
        return Fault(why=why, fix="ask for fewer")
    return None


def _with_size(job: runtime.Job, size: Size) -> runtime.Job:
    group = dataclasses.replace(job.group, replicas=size.replicas, completions=size.completions)
    return dataclasses.replace(job, group=group)
