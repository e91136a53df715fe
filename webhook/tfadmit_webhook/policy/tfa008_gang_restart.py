"""TFA008: when a task fails, all tasks start again together.

A worker that is restarted alone is a "different incarnation" to its peers: they refuse it, or
wait. What works is `backoffLimit: 0` in the jobs, so that no pod is retried alone, and a
failurePolicy with maxRestarts, so that JobSet starts all of them again; the training resumes from
its checkpoint.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "template", "spec", "failurePolicy", "maxRestarts")


def check(case: Case) -> Iterator[Finding]:
    """Find jobs that retry pods alone, and a JobSet that never starts again."""
    if raw.count(raw.at(case.content, PATH), default=0) == 0:
        yield Finding(path=PATH, what="is 0 or missing", fix="`maxRestarts: 2`, or as you like")
    for job in case.tasks:
        limit = job.spec.get("backoffLimit")
        if limit != 0:
            what = "is missing, which means 6" if limit is None else f"is {limit}"
            yield Finding(path=(*job.spec_path, "backoffLimit"), what=what, fix="`backoffLimit: 0`")


RULE = Rule(
    id="TFA008",
    name="gang-restart",
    subjects=frozenset({"runtime"}),
    level="warn",
    why="a task that is restarted alone is a different incarnation to its peers",
    check=check,
)
