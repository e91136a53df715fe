"""TFA005: exactly one replicated job is Trainer's step `trainer`, and it is called `node`.

Trainer maps numNodes, image, command, environment and resources of a TrainJob to this step. With
none of them a TrainJob changes nothing; with several, numNodes changes the first one only. The
Kubeflow SDK reads logs and status of a job called `node` and of no other.
"""

from collections.abc import Iterator

from tfadmit_trainer import contract
from tfadmit_webhook import runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule

LABEL = f"`{contract.ANCESTOR_LABEL}: {runtime.TRAINER_STEP}`"


def check(case: Case) -> Iterator[Finding]:
    """Find no step, several steps, and a step with another name."""
    steps = [job for job in case.jobs if job.step == runtime.TRAINER_STEP]
    if not steps:
        yield Finding(
            path=runtime.JOBS_PATH,
            what="have no trainer step",
            fix=f"{LABEL} under template.metadata.labels of the workers' job",
        )
    for job in steps[1:]:
        yield Finding(
            path=(*job.path, "template", "metadata", "labels", contract.ANCESTOR_LABEL),
            what=f"is a second trainer step, after {steps[0].name!r}",
            fix="keep the label at the workers' job only",
        )
    for job in steps[:1]:
        if job.name != "node":
            yield Finding(
                path=(*job.path, "name"),
                what=f"is {job.name!r}",
                why="the Kubeflow SDK shows status and logs of 'node' only",
                fix="`name: node`",
                only_warn=True,
            )


RULE = Rule(
    id="TFA005",
    name="trainer-step",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="Trainer gives numNodes, image, command and environment of a TrainJob to this one job",
    check=check,
)
