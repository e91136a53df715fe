"""TFA001: a TensorFlow runtime publishes the addresses of pods that are not ready yet.

Every task connects to all others while it starts, before any pod is Ready. Without
`publishNotReadyAddresses: true` the headless Service of the JobSet has no names for such pods, not
even the own one: each task waits for the others until TensorFlow gives up after an hour. The fault
shows late, only with images or runtimes that have a readiness probe. JobSet's own default is true,
but it is applied to the JobSet and may change; missing counts as a violation.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "template", "spec", "network", "publishNotReadyAddresses")


def check(case: Case) -> Iterator[Finding]:
    """Find a value that is not true."""
    value = raw.at(case.content, PATH)
    if value is not True:
        what = "is not stated" if value is None else f"is {str(value).lower()}"
        yield Finding(path=PATH, what=what, fix="`publishNotReadyAddresses: true`")


RULE = Rule(
    id="TFA001",
    name="publish-not-ready-addresses",
    subjects=frozenset({"runtime"}),
    level="deny",
    why=(
        "TensorFlow tasks connect to each other before any pod is ready, and only with true do "
        "pods that are not ready have DNS names"
    ),
    check=check,
)
