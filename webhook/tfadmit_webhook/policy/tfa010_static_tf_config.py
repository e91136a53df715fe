"""TFA010: no template states what differs from pod to pod.

TF_CONFIG holds the index of a task; in a pod template it is the same for all pods, so all of them
are task 0. The webhook sets these variables and never overwrites what a container has.
"""

from collections.abc import Iterator

from tfadmit_trainer import contract
from tfadmit_webhook import raw, workload
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PER_POD = (contract.TF_CONFIG_ENV, contract.TASK_INDEX_ENV)


def check(case: Case) -> Iterator[Finding]:
    """Find per-pod variables in pod templates of tasks."""
    for job in case.tasks:
        for container in job.pod.containers():
            yield from _static(container, at=job.template_path)


def _static(container: workload.Container, *, at: raw.Path) -> Iterator[Finding]:
    for index, item in enumerate(raw.sequence(container.content.get("env"))):
        entry = raw.mapping(item)
        # A reference (fieldRef) can differ per pod.
        if entry.get("name") in PER_POD and entry.get("valueFrom") is None:
            yield Finding(
                path=(*at, *container.path, "env", index),
                what=f"sets {entry.get('name')}",
                fix="remove it, the webhook sets it",
            )


RULE = Rule(
    id="TFA010",
    name="static-tf-config",
    subject="runtime",
    level="deny",
    why="it is the same for all pods, so all of them would be the same task",
    check=check,
)
