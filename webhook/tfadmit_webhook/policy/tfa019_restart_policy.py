"""TFA019: the restart policy of pods is one that their Job can have.

A podFailurePolicy takes `restartPolicy: Never`, and no Job takes `Always`. Where nothing is stated
JobSet writes `OnFailure`. The API server refuses such a Job, but only when JobSet makes it: the
runtime and its TrainJobs are accepted, and stay without pods.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

_DEFAULT = "OnFailure"  # of JobSet, jobset_webhook.go


def check(case: Case) -> Iterator[Finding]:
    """Find jobs that the API server refuses for the restart policy of their pods."""
    for job in case.jobs:
        stated = raw.text(job.pod.spec.get("restartPolicy"))
        path = (*job.template_path, "spec", "restartPolicy")
        shown = f"is {stated}" if stated else f"is missing, which means {_DEFAULT}"
        if job.spec.get("podFailurePolicy") is not None and stated != "Never":
            what = f"{shown}, and the job has a podFailurePolicy"
            yield Finding(path=path, what=what, fix="`restartPolicy: Never`")
        elif stated not in ("Never", "OnFailure", ""):
            yield Finding(path=path, what=shown, fix="`restartPolicy: Never`")


RULE = Rule(
    id="TFA019",
    name="restart-policy",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="the API server refuses such a Job, and of TrainJobs nothing would start",
    check=check,
)
