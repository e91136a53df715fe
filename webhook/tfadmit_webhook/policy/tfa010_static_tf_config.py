"""TFA010: no template states what differs from pod to pod.

TF_CONFIG holds the index of a task; in a pod template it is the same for all pods, so all of them
are task 0. The webhook sets these variables and never overwrites what a container has. In what a
TrainJob adds to those templates it is a warning: `trainer.env`, `runtimePatches`, and before
Trainer 2.2 `podTemplateOverrides` and `podSpecOverrides`.
"""

from collections.abc import Iterator

from tfadmit_trainer import contract
from tfadmit_webhook import raw, trainjob
from tfadmit_webhook.policy.rule import Case, Finding, Rule

_TRAINER: raw.Path = ("spec", "trainer")
PER_POD = (contract.TF_CONFIG_ENV, contract.TASK_INDEX_ENV)


def check(case: Case) -> Iterator[Finding]:
    """Find per-pod variables in pod templates of tasks, and in what a TrainJob adds to them."""
    if case.subject == "trainjob":
        yield from _trainjob(case)
        return
    for job in case.tasks:
        for container in job.pod.containers():
            path = (*job.template_path, *container.path, "env")
            yield from _static(container.content.get("env"), at=path)


def _trainjob(case: Case) -> Iterator[Finding]:
    if case.tasks:
        env = raw.at(case.content, (*_TRAINER, "env"))
        yield from _static(env, at=(*_TRAINER, "env"), only_warn=True)
    tasks = {job.name for job in case.tasks}
    for patch in trainjob.patches(case.content):
        if any(name in tasks for _, name in patch.jobs):
            for kind in ("containers", "initContainers"):
                for index, item in enumerate(raw.sequence(patch.spec.get(kind))):
                    path = (*patch.path, kind, index, "env")
                    yield from _static(raw.mapping(item).get("env"), at=path, only_warn=True)


def _static(env: object, *, at: raw.Path, only_warn: bool = False) -> Iterator[Finding]:
    for index, item in enumerate(raw.sequence(env)):
        entry = raw.mapping(item)
        # A reference (fieldRef) can differ per pod.
        if entry.get("name") in PER_POD and entry.get("valueFrom") is None:
            yield Finding(
                path=(*at, index),
                what=f"sets {entry.get('name')}",
                fix="remove it, the webhook sets it",
                only_warn=only_warn,
            )


RULE = Rule(
    id="TFA010",
    name="static-tf-config",
    subjects=frozenset({"runtime", "trainjob"}),
    level="deny",
    why="it is the same for all pods, so all of them would be the same task",
    check=check,
)
