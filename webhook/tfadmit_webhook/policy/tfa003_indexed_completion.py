"""TFA003: the jobs of TensorFlow tasks are Indexed, and all of their pods run at once.

The task index is the completion index; a NonIndexed job has none, and its pods no host names. All
tasks wait for each other, so a parallelism below completions never gets going. Trainer writes both
counts of its own step; for the other roles they are the runtime's.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule


def check(case: Case) -> Iterator[Finding]:
    """Find jobs without indexes, and jobs whose tasks do not all run at once."""
    for job in case.tasks:
        mode = job.spec.get("completionMode")
        if mode not in (None, "Indexed"):
            yield Finding(
                path=(*job.spec_path, "completionMode"),
                what=f"is {mode}",
                fix="`completionMode: Indexed`",
            )
        if job.step != runtime.TRAINER_STEP:
            yield from _counts(job)


def _counts(job: runtime.Job) -> Iterator[Finding]:
    parallelism = raw.count(job.spec.get("parallelism"), default=1)
    completions = raw.count(job.spec.get("completions"), default=parallelism)
    if parallelism != completions:
        yield Finding(
            path=(*job.spec_path, "parallelism"),
            what=f"is {parallelism} for {completions} completions",
            fix=f"`parallelism: {completions}`",
        )


RULE = Rule(
    id="TFA003",
    name="indexed-completion",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="a task's index is its completion index, and all tasks must run at once to find each other",
    check=check,
)
