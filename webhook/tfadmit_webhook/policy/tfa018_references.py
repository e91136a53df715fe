"""TFA018: what a runtime refers to by name is there.

`dependsOn`, `successPolicy`, `failurePolicy` and `coordinator` name replicated jobs, and a
podFailurePolicy names containers. JobSet's webhook and the API server refuse a wrong name, but only
when Trainer makes the JobSet and its Jobs: the runtime and its TrainJobs are accepted, and stay
without pods and without a condition that says why. `dependsOn` must name a job that stands earlier.
"""

from collections.abc import Iterator, Sequence

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule, one_of

_SPEC: raw.Path = ("spec", "template", "spec")
_SUCCESS: raw.Path = (*_SPEC, "successPolicy", "targetReplicatedJobs")
_RULES: raw.Path = (*_SPEC, "failurePolicy", "rules")
_COORDINATOR: raw.Path = (*_SPEC, "coordinator", "replicatedJob")
_JOB_RULES: raw.Path = ("template", "spec", "podFailurePolicy", "rules")


def check(case: Case) -> Iterator[Finding]:
    """Find names of jobs and containers that do not exist."""
    names = [job.name for job in case.jobs]
    rules = raw.sequence(raw.at(case.content, _RULES))
    targets = [(*_RULES, index, "targetReplicatedJobs") for index in range(len(rules))]
    for path in (_SUCCESS, *targets):
        for index, name in enumerate(raw.sequence(raw.at(case.content, path))):
            yield from _unknown(name, names, at=(*path, index))
    if coordinator := raw.at(case.content, _COORDINATOR):
        yield from _unknown(coordinator, names, at=_COORDINATOR)
    for number, job in enumerate(case.jobs):
        yield from _order(job, earlier=names[:number])
        yield from _containers(job)


def _unknown(name: object, known: Sequence[str], *, at: raw.Path) -> Iterator[Finding]:
    if name not in known:
        yield Finding(path=at, what=f"is {name!r}, which is no job here", fix=one_of(known))


def _order(job: runtime.Job, *, earlier: Sequence[str]) -> Iterator[Finding]:
    for index, item in enumerate(raw.sequence(job.content.get("dependsOn"))):
        name = raw.mapping(item).get("name")
        if name not in earlier:
            yield Finding(
                path=(*job.path, "dependsOn", index, "name"),
                what=f"is {name!r}, which is no job before this one",
                fix=one_of(earlier) if earlier else "no dependsOn in the first job",
            )


def _containers(job: runtime.Job) -> Iterator[Finding]:
    known = [container.name for container in job.pod.containers()]
    for index, item in enumerate(raw.sequence(raw.at(job.content, _JOB_RULES))):
        inner = ("onExitCodes", "containerName")
        name = raw.at(item, inner)
        if name and name not in known:
            yield Finding(
                path=(*job.path, *_JOB_RULES, index, *inner),
                what=f"is {name!r}, which is no container of its pods",
                fix=one_of(known),
            )


RULE = Rule(
    id="TFA018",
    name="references",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="the runtime would be accepted, and of its TrainJobs nothing would start",
    check=check,
)
