"""TFA007: with parameter servers or an evaluator the JobSet says whose success is its own.

Parameter servers never end by themselves, and an evaluator waits for checkpoints. Without a
successPolicy that names the roles that end, the JobSet waits for all jobs: the training is over,
and its pods stay. This is TFJob's cleanPodPolicy the other way round.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "template", "spec", "successPolicy")
_ENDLESS = ("ps", "evaluator")


def check(case: Case) -> Iterator[Finding]:
    """Find a JobSet that would wait for a role that does not end."""
    endless = [job.name for job in case.tasks if job.group.role in _ENDLESS]
    if not endless:
        return
    ending = [job.name for job in case.tasks if job.group.role not in _ENDLESS]
    policy = raw.mapping(raw.at(case.content, PATH))
    targets = [raw.text(name) for name in raw.sequence(policy.get("targetReplicatedJobs"))]
    example = f"`successPolicy: {{operator: All, targetReplicatedJobs: [{', '.join(ending)}]}}`"
    if not targets:
        what = f"names no jobs, and {endless[0]!r} does not end"
        yield Finding(path=PATH, what=what, fix=example)
    for index, name in enumerate(targets):
        path = (*PATH, "targetReplicatedJobs", index)
        if name in endless and policy.get("operator") != "Any":
            yield Finding(path=path, what=f"is {name!r}, which does not end", fix=example)


RULE = Rule(
    id="TFA007",
    name="success-policy",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="the job would never complete, and its parameter servers would keep running",
    check=check,
)
