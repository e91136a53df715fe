"""What in a JobSet names its replicated jobs, after some were taken away: nothing may name them.

Also the successPolicy that the roles need when none is stated. Pure: raw object in, operations out;
operations that shift list items come last, the largest index first.
"""

from collections.abc import Collection, Iterator, Sequence

from tfadmit_trainer import contract
from tfadmit_webhook import patch, raw, runtime
from tfadmit_webhook.decision import Operation, Reason, Refusal

_SUCCESS: raw.Path = ("spec", "successPolicy")
_RULES: raw.Path = ("spec", "failurePolicy", "rules")
_TARGETS = "targetReplicatedJobs"
_ENDLESS: tuple[contract.Role, ...] = ("ps", "evaluator")


def success(
    content: raw.JsonObject, tasks: Sequence[runtime.Job], *, removed: Collection[str]
) -> list[str] | None:
    """Give the jobs whose success is the JobSet's, or None where the stated policy stays.

    As TFJob had it: the chief's, without one all workers'. Parameter servers never end, and an
    evaluator waits for checkpoints: JobSet's own default waits for them, too.
    """
    policy = raw.mapping(raw.at(content, _SUCCESS))
    stated = [name for name in raw.sequence(policy.get(_TARGETS)) if isinstance(name, str)]
    kept = [name for name in stated if name not in removed]
    if stated:
        return None if kept == stated else kept or _ending(tasks)
    endless = any(job.group.role in _ENDLESS for job in tasks)
    # "Any" without names is a policy of its own: the first job that ends.
    if not endless or policy.get("operator") == "Any":
        return None
    return _ending(tasks)


def set_success(content: raw.JsonObject, targets: Sequence[str]) -> list[Operation]:
    """Give the operations after which these jobs' success is the JobSet's."""
    policy = raw.mapping(raw.at(content, _SUCCESS))
    operator = {} if raw.text(policy.get("operator")) else {"operator": "All"}
    return patch.set_entries(content, _SUCCESS, {**operator, _TARGETS: list(targets)})


def follow(
    content: raw.JsonObject, jobs: Sequence[runtime.Job], *, removed: Collection[str]
) -> list[Operation] | Refusal:
    """Give the operations after which neither dependsOn nor failurePolicy names a removed job."""
    if not removed:
        return []
    coordinator = raw.text(raw.at(content, ("spec", "coordinator", "replicatedJob")))
    if coordinator in removed:
        return Refusal(
            reason=Reason.CANNOT_FOLLOW,
            message=(
                f"spec.coordinator names the replicated job {coordinator!r}, which annotation "
                f"{contract.REPLICAS_ANNOTATION} takes away: name another one in the runtime, or "
                "keep the role"
            ),
        )
    operations = [item for job in jobs for item in _depends(job, removed)]
    return [*operations, *_rules(content, removed)]


def _ending(tasks: Sequence[runtime.Job]) -> list[str]:
    by_role: dict[contract.Role, list[str]] = {role: [] for role in contract.ROLES}
    for job in tasks:
        by_role[job.group.role].append(job.name)
    return by_role["chief"] or by_role["worker"]


def _depends(job: runtime.Job, removed: Collection[str]) -> Iterator[Operation]:
    path = (*job.path, "dependsOn")
    names = [
        raw.text(raw.at(item, ("name",))) for item in raw.sequence(raw.at(job.content, path[-1:]))
    ]
    gone = [index for index, name in enumerate(names) if name in removed]
    # JobSet takes an empty list for a stated one, and refuses it on its first job.
    if gone and len(gone) == len(names):
        yield patch.remove(path)
    else:
        yield from (patch.remove((*path, index)) for index in reversed(gone))


def _rules(content: raw.JsonObject, removed: Collection[str]) -> Iterator[Operation]:
    """Shorten rules; one that was about removed jobs only would be about all without its names."""
    rules = raw.sequence(raw.at(content, _RULES))
    obsolete: list[int] = []
    for index, rule in enumerate(rules):
        names = [raw.text(name) for name in raw.sequence(raw.mapping(rule).get(_TARGETS))]
        gone = [at for at, name in enumerate(names) if name in removed]
        if gone and len(gone) == len(names):
            obsolete.append(index)
        else:
            yield from (patch.remove((*_RULES, index, _TARGETS, at)) for at in reversed(gone))
    # An empty list reads back as none, which JobSet would call a change.
    if obsolete and len(obsolete) == len(rules):
        yield patch.remove(_RULES)
    else:
        yield from (patch.remove((*_RULES, index)) for index in reversed(obsolete))
