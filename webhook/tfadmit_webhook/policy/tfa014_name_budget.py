"""TFA014: the names of a TrainJob's pods are short enough.

A pod's host name is `<TrainJob>-<replicated job>-<job index>-<pod index>`, and DNS allows 63
characters. JobSet counts five more and a hyphen for the end of the pod's name, and it refuses a
JobSet whose largest index makes a longer name. The TrainJob itself was accepted then: it stays, and
nothing starts. How long its name may be depends on the runtime and on the number of nodes.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime, trainjob
from tfadmit_webhook.policy.rule import Case, Finding, Rule

LIMIT = 63
# What the Job controller adds; jobset_webhook.go checks with these very letters.
_RANDOM = "-abcde"


def check(case: Case) -> Iterator[Finding]:
    """Find the name that is too long for the job with the longest pod names."""
    endings = [_ending(job) for job in case.jobs]
    if not endings:
        return
    name, longest = trainjob.name(case.content), max(endings, key=len)
    room = LIMIT - len(longest)
    if len(name) > room:
        fix = (
            f"a name of at most {room} characters"
            if room > 0
            else "shorter names of the replicated jobs in the runtime"
        )
        yield Finding(
            path=("metadata", "name"),
            what=f"has {len(name)} characters, which makes names like {name}{longest} of "
            f"{len(name) + len(longest)}",
            fix=fix,
        )


def _ending(job: runtime.Job) -> str:
    """Give what follows the TrainJob's name in the longest name that JobSet checks."""
    ending = f"-{job.name}-{job.group.replicas - 1}"
    if raw.text(job.spec.get("completionMode")) == "NonIndexed":
        return ending
    return f"{ending}-{job.group.completions - 1}{_RANDOM}"


RULE = Rule(
    id="TFA014",
    name="name-budget",
    subjects=frozenset({"trainjob"}),
    level="deny",
    why=f"JobSet refuses names of more than {LIMIT} characters, and nothing would start",
    check=check,
)
