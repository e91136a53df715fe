"""TFA007: a successPolicy does not wait for a role that does not end.

Parameter servers never end by themselves: a JobSet that waits for them is never complete, and its
pods stay after the training. This is TFJob's cleanPodPolicy the other way round. An evaluator ends
if its program does, as it may be wanted for a last evaluation, so it is only warned of. Where no
job is named, the webhook names those that end when the JobSet is created: the chief, without one
the workers.
"""

from collections.abc import Iterator, Mapping

from tfadmit_trainer import contract
from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "template", "spec", "successPolicy")
_ENDLESS = ("ps", "evaluator")
_IF_EVALUATED = (
    "the training is complete when its program has ended, and one that waits for checkpoints "
    "without end keeps all pods running"
)


def check(case: Case) -> Iterator[Finding]:
    """Find a JobSet that waits for a role that does not end."""
    roles = {job.name: job.group.role for job in case.tasks}
    policy = raw.mapping(raw.at(case.content, PATH))
    targets = [raw.text(name) for name in raw.sequence(policy.get("targetReplicatedJobs"))]
    endless = [name for name in targets if roles.get(name) in _ENDLESS]
    if policy.get("operator") == "Any" and len(endless) < len(targets):
        return
    may_end = policy.get("operator") == "Any" and "evaluator" in map(roles.get, endless)
    example = f"`successPolicy: {{operator: All, targetReplicatedJobs: [{_ending(roles)}]}}`"
    for index, name in enumerate(targets):
        if name not in endless:
            continue
        evaluates = roles[name] == "evaluator"
        yield Finding(
            path=(*PATH, "targetReplicatedJobs", index),
            what=f"is {name!r}, which "
            + ("ends if its program does" if evaluates else "does not end"),
            fix=example,
            why=_IF_EVALUATED if evaluates else "",
            only_warn=evaluates or may_end,
        )


def _ending(roles: Mapping[str, contract.Role]) -> str:
    """Give the jobs that the webhook would name: with a chief, its workers serve it."""
    chiefs = [name for name, role in roles.items() if role == "chief"]
    workers = [name for name, role in roles.items() if role == "worker"]
    return ", ".join(chiefs or workers)


RULE = Rule(
    id="TFA007",
    name="success-policy",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="the job would never complete, and its parameter servers would keep running",
    check=check,
)
