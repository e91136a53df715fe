"""TFA006: the roles make a cluster that TensorFlow accepts.

TensorFlow knows chief, worker, ps and evaluator; at most one chief and one evaluator. Parameter
servers serve somebody, and an evaluator evaluates what somebody trains: both need a worker or a
chief.
"""

from collections.abc import Iterator

from tfadmit_trainer import contract
from tfadmit_webhook import runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule

_SINGLE: tuple[contract.Role, ...] = ("chief", "evaluator")
_DEPENDENT: tuple[contract.Role, ...] = ("ps", "evaluator")


def check(case: Case) -> Iterator[Finding]:
    """Find unknown roles, too many of a single one, and roles that serve nobody."""
    for job in case.tasks:
        yield from _unknown(job)
    for role in _SINGLE:
        if (count := runtime.tasks(case.jobs, role)) > 1:
            yield Finding(
                path=runtime.JOBS_PATH,
                what=f"have {count} {role} tasks",
                fix=f"replicas 1 and completions 1 in one job of role {role}",
            )
    trains = any(job.group.role in ("chief", "worker") for job in case.tasks)
    for role in _DEPENDENT:
        if not trains and runtime.tasks(case.jobs, role):
            yield Finding(
                path=runtime.JOBS_PATH,
                what=f"have a {role} and nobody who trains",
                fix="add a job of role worker or chief",
            )


def _unknown(job: runtime.Job) -> Iterator[Finding]:
    label = job.pod.labels.get(contract.ROLE_LABEL)
    if label is not None and label not in (*contract.ROLES, "master"):
        yield Finding(
            path=(*job.template_path, "metadata", "labels", contract.ROLE_LABEL),
            what=f"is {label!r}",
            fix=f"one of {', '.join(contract.ROLES)}",
        )


RULE = Rule(
    id="TFA006",
    name="roles",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="TensorFlow refuses any other cluster, or waits for it without end",
    check=check,
)
