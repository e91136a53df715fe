"""A JobSet with the roles that its users asked for, as a minimal patch on the raw object.

The annotation `tfadmit.dev/replicas` sizes roles, placeholders take over the program of Trainer's
step, and the policies follow. Pure; the parts stand in `jobset_replicas`, `jobset_inherit` and
`jobset_policies`.

Trainer applies a JobSet again and again while it is suspended, each time with the numbers of the
runtime, and JobSet lets nobody change its jobs after creation. So an update gets the same numbers
again, and nothing that it was not created with.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfadmit_trainer import contract
from tfadmit_webhook import (
    jobset_inherit,
    jobset_policies,
    jobset_replicas,
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
    if status := _status(content, roles, inherited=given, success=success):
        operations += _set_status(content, status)
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
    status = jobset_view.annotations(old)[contract.STATUS_ANNOTATION]
    return [*_sized(content, roles), *_set_status(content, status), *followed]


def is_shaped(content: raw.JsonObject) -> bool:
    """Whether a JobSet was created by way of `created`, which had something to decide."""
    return contract.STATUS_ANNOTATION in jobset_view.annotations(content)


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
        fault = jobset_replicas.gang_fault(roles.jobs, roles.sizes, text=roles.text)
    elif jobset_view.is_queued_as_trainjob(content):
        fault = jobset_replicas.queue_fault(roles.jobs, roles.sizes, text=roles.text)
    return _refuse(fault) if fault else None


def _refuse(fault: jobset_replicas.Fault) -> Refusal:
    reason = Reason.CANNOT_FOLLOW if fault.is_fixed else Reason.ANNOTATION_INVALID
    text = f"annotation {contract.REPLICAS_ANNOTATION} {fault.what}; fix: {fault.fix}"
    return Refusal(reason=reason, message=text)


def _sized(content: raw.JsonObject, roles: _Roles) -> list[Operation]:
    operations: list[Operation] = []
    for job in roles.jobs:
        size = roles.sizes.get(job.name)
        if size is None or not size.total or size == jobset_replicas.present_size(job):
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
    before = _totals(jobset_view.tasks(jobset_view.jobs(old)))
    after = _totals(roles.tasks)
    return ", ".join(
        f"{role} {before.get(role, 0)} to {after.get(role, 0)}"
        for role in contract.ROLES
        if before.get(role, 0) != after.get(role, 0)
    )


def _fixed(content: raw.JsonObject, roles: _Roles, change: str) -> Refusal:
    name = raw.text(raw.at(content, ("metadata", "name")))
    wish = f"{contract.REPLICAS_ANNOTATION}: {roles.text!r}" if roles.text else "its jobs"
    return Refusal(
        reason=Reason.CANNOT_FOLLOW,
        message=(
            f"{wish} would change JobSet {name!r} ({change}), and JobSet keeps the numbers that it "
            "was created with: delete the TrainJob and create it again, or put back what it had"
        ),
    )


def _totals(tasks: Sequence[runtime.Job]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for job in tasks:
        totals[job.group.role] = totals.get(job.group.role, 0) + job.group.size
    return totals


def _set_status(content: raw.JsonObject, status: str) -> list[Operation]:
    return patch.set_entries(
        content, jobset_view.ANNOTATIONS_PATH, {contract.STATUS_ANNOTATION: status}
    )


def _status(
    content: raw.JsonObject,
    roles: _Roles,
    *,
    inherited: Mapping[str, Sequence[str]],
    success: Sequence[str] | None,
) -> str:
    """Say in one short value what was decided, empty when nothing was.

    A second round over our own output finds nothing left to inherit, so what the first one wrote
    stays.
    """
    before = _written(content)
    status: dict[str, Any] = {"v": contract.VERSION}
    if roles.text:
        status["roles"] = _totals(roles.tasks)
    if given := {**raw.mapping(before.get("inherited")), **inherited}:
        status["inherited"] = given
    if targets := success or raw.sequence(before.get("success")):
        status["success"] = list(targets)
    return json.dumps(status, separators=(",", ":")) if len(status) > 1 else ""


def _written(content: raw.JsonObject) -> raw.JsonObject:
    text = jobset_view.annotations(content).get(contract.STATUS_ANNOTATION, "")
    try:
        return raw.mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}
