"""A JobSet with the roles that its users asked for, as a minimal patch on the raw object.

The annotation `tfadmit.dev/replicas` sizes roles, placeholders take over the program of Trainer's
step, and the policies follow. Pure; the parts stand in `jobset_replicas`, `jobset_inherit` and
`jobset_policies`, and what was decided is written by `jobset_status`.

Trainer applies a JobSet again and again while it is suspended, each time with the numbers of the
runtime, and JobSet lets nobody change its jobs after creation. So an update gets the same numbers
again, and nothing that it was not created with.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_webhook import (
    jobset_counted,
    jobset_inherit,
    jobset_policies,
    jobset_replicas,
    jobset_status,
    jobset_view,
    patch,
    raw,
    runtime,
)
from tfadmit_webhook.decision import Operation, Reason, Refusal


@dataclass(frozen=True, kw_only=True)
class _Roles:
    """A JobSet's jobs as they come, and as they will be."""

    text: str
    jobs: tuple[runtime.Job, ...]
    sizes: jobset_replicas.Sizes

    @property
    def left(self) -> tuple[runtime.Job, ...]:
        return jobset_replicas.resized(self.jobs, self.sizes)

    @property
    def tasks(self) -> tuple[runtime.Job, ...]:
        return jobset_view.tasks(self.left)

    @property
    def removed(self) -> frozenset[str]:
        return frozenset(name for name, size in self.sizes.items() if not size.total)


def created(content: raw.JsonObject) -> list[Operation] | Refusal:
    """Give the patch for a new JobSet."""
    roles = _roles(content)
    if isinstance(roles, Refusal):
        return roles
    if fixed := _fixed_elsewhere(content, roles):
        return fixed
    inherited = list(jobset_inherit.plan(roles.tasks))
    success = jobset_policies.success(content, roles.tasks, removed=roles.removed)
    operations = _sized(content, roles)
    for item in inherited:
        operations += item.operations(content)
    followed = _followed(content, roles, success)
    if isinstance(followed, Refusal):
        return followed
    given = {item.job: item.names for item in inherited}
    wanted = roles.tasks if roles.text else ()
    operations += jobset_status.decided(content, wanted, inherited=given, success=success)
    return [*operations, *followed]


def updated(content: raw.JsonObject, old: raw.JsonObject) -> list[Operation] | Refusal:
    """Give the patch that keeps a JobSet's roles as they were created."""
    roles = _roles(content)
    if isinstance(roles, Refusal):
        return roles
    if change := _change(roles, old):
        return _fixed(content, roles, change)
    success = jobset_policies.success(content, roles.tasks, removed=roles.removed)
    followed = _followed(content, roles, success)
    if isinstance(followed, Refusal):
        return followed
    return [*_sized(content, roles), *jobset_status.kept(content, old), *followed]


def wish(content: raw.JsonObject) -> str:
    """Give the text of the annotation, or nothing."""
    return jobset_view.annotations(content).get(contract.REPLICAS_ANNOTATION, "")


def _roles(content: raw.JsonObject) -> _Roles | Refusal:
    text = wish(content)
    jobs = jobset_view.jobs(content)
    sizes = jobset_replicas.sizes(jobset_view.tasks(jobs), text)
    if isinstance(sizes, jobset_replicas.Fault):
        return _refuse(sizes)
    return _Roles(text=text, jobs=jobs, sizes=sizes)


def _fixed_elsewhere(content: raw.JsonObject, roles: _Roles) -> Refusal | None:
    """Refuse numbers that whoever has counted the pods already would not know of."""
    fault = None
    if jobset_view.is_gang(roles.jobs):
        fault = jobset_counted.by_pod_group(roles.jobs, roles.sizes, text=roles.text)
    elif jobset_view.is_queued_as_trainjob(content):
        fault = jobset_counted.by_kueue(roles.jobs, roles.sizes, text=roles.text)
    return _refuse(fault) if fault else None


def _refuse(fault: jobset_replicas.Fault) -> Refusal:
    reason = Reason.CANNOT_FOLLOW if fault.is_fixed else Reason.ANNOTATION_INVALID
    text = f"annotation {contract.REPLICAS_ANNOTATION} {fault.what}; fix: {fault.fix}"
    return Refusal(reason=reason, message=text)


def _sized(content: raw.JsonObject, roles: _Roles) -> list[Operation]:
    operations: list[Operation] = []
    for job in roles.jobs:
        size = roles.sizes.get(job.name)
        if size is None or not size.total:
            continue
        counts = {"parallelism": size.completions, "completions": size.completions}
        operations += patch.set_entries(content, job.spec_path, counts)
        if size.replicas != job.group.replicas:
            operations += patch.set_entries(content, job.path, {"replicas": size.replicas})
    return operations


def _followed(
    content: raw.JsonObject, roles: _Roles, success: Sequence[str] | None
) -> list[Operation] | Refusal:
    """Give the operations on what names jobs, and last those that take jobs away."""
    left = [job for job in roles.jobs if job.name not in roles.removed]
    named = jobset_policies.follow(content, left, removed=roles.removed)
    if isinstance(named, Refusal):
        return named
    operations = jobset_policies.set_success(content, success) if success else []
    gone = [patch.remove(job.path) for job in roles.jobs if job.name in roles.removed]
    return [*operations, *named, *reversed(gone)]


def _change(roles: _Roles, old: raw.JsonObject) -> str:
    """Say which role would get another number than it was created with."""
    before = jobset_status.totals(jobset_view.tasks(jobset_view.jobs(old)))
    after = jobset_status.totals(roles.tasks)
    return ", ".join(
        f"{role} {before.get(role, 0)} to {after.get(role, 0)}"
        for role in contract.ROLES
        if before.get(role, 0) != after.get(role, 0)
    )


def _fixed(content: raw.JsonObject, roles: _Roles, change: str) -> Refusal:
    name = raw.text(raw.at(content, ("metadata", "name")))
    shown = jobset_replicas.shown(roles.text)
    wish = f"{contract.REPLICAS_ANNOTATION}: {shown}" if roles.text else "its jobs"
    return Refusal(
        reason=Reason.CANNOT_FOLLOW,
        message=(
            f"{wish} would change JobSet {name!r} ({change}), and JobSet keeps the numbers that it "
            "was created with: delete the TrainJob and create it again, or put back what it had"
        ),
    )
