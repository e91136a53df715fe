"""TFA022: no task waits for the end of another task.

All tasks of a TensorFlow cluster connect to each other while they start. A `dependsOn` with the
status Complete holds back the pods of a job until another job has ended, which waits for them: the
other tasks stop at the missing names. A parameter server does not end at all. The status Ready, and
waiting for an initializer, are fine; an evaluator may start after the training.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule


def check(case: Case) -> Iterator[Finding]:
    """Find tasks that would start only after another one has ended."""
    tasks = {job.name: job for job in case.tasks}
    for job in case.tasks:
        for index, item in enumerate(raw.sequence(job.content.get("dependsOn"))):
            other = tasks.get(raw.text(raw.mapping(item).get("name")))
            complete = raw.mapping(item).get("status") == "Complete"
            if complete and other and _deadlock(job, other):
                yield Finding(
                    path=(*job.path, "dependsOn", index, "status"),
                    what=f"is Complete, and {other.name!r} does not end without {job.name!r}",
                    fix="`status: Ready`, or remove it, tasks wait for each other by themselves",
                )


def _deadlock(job: runtime.Job, other: runtime.Job) -> bool:
    return job.group.role != "evaluator" or other.group.role in ("ps", "evaluator")


RULE = Rule(
    id="TFA022",
    name="start-order",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="each would wait for the other",
    check=check,
)
