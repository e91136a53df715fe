"""TFA021: each TrainJob has a Service of its own.

JobSet names its headless Service after `network.subdomain`, or after itself. A subdomain in a
runtime is the same for all TrainJobs on it: the second one of a namespace finds the Service of the
first, which selects the first one's pods only, and none of its own names resolves, even when the
first one has ended and is still there. JobSet says nothing about it.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "template", "spec", "network", "subdomain")


def check(case: Case) -> Iterator[Finding]:
    """Find a subdomain that all TrainJobs would share."""
    if name := raw.text(raw.at(case.content, PATH)):
        yield Finding(
            path=PATH,
            what=f"is {name!r} for every TrainJob",
            fix="remove it, the name of the TrainJob is taken",
        )


RULE = Rule(
    id="TFA021",
    name="subdomain",
    subjects=frozenset({"runtime"}),
    # A Service of that name that somebody made beforehand, for all pods, would do.
    level="warn",
    why="two TrainJobs in a namespace share one Service, which has the names of the first only",
    check=check,
)
