"""TFA009: a gang can be scheduled.

A podGroupPolicy makes Trainer count the pods of all jobs into one PodGroup, whose pods start
together or not at all. `dependsOn` holds back pods until others run: then the group is never
complete, and nothing starts. Trainer sets no schedulerName; with the default scheduler the
PodGroup has no effect.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "podGroupPolicy")


def check(case: Case) -> Iterator[Finding]:
    """Find jobs that wait for others of their gang, and gangs that nobody schedules."""
    if not runtime.is_gang(case.content):
        return
    group = raw.mapping(raw.at(case.content, PATH))
    for job in case.jobs:
        if raw.sequence(job.content.get("dependsOn")):
            yield Finding(
                path=(*job.path, "dependsOn"),
                what="holds back pods of a gang that starts as a whole",
                fix="remove it, tasks wait for each other by themselves",
            )
        if not raw.text(job.pod.spec.get("schedulerName")):
            scheduler = "volcano" if "volcano" in group else "the name of your scheduler"
            yield Finding(
                path=(*job.template_path, "spec", "schedulerName"),
                what="is missing",
                why="the default scheduler ignores the PodGroup, and Trainer sets no other",
                fix=f"`schedulerName: {scheduler}`",
                only_warn=True,
            )


RULE = Rule(
    id="TFA009",
    name="gang-schedule",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="the gang would wait for pods that wait for the gang",
    check=check,
)
