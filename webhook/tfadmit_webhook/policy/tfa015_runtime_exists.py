"""TFA015: a TrainJob refers to a runtime that is there and stays.

Trainer refuses a TrainJob without its runtime, in words that do not say where it looked. A runtime
that is being deleted is kept only until the TrainJobs that use it are gone.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, trainjob
from tfadmit_webhook.policy.rule import Case, Finding, Rule


def check(case: Case) -> Iterator[Finding]:
    """Find a reference to a runtime that is missing or going."""
    namespace = raw.text(raw.at(case.content, ("metadata", "namespace")))
    reference = trainjob.reference(case.content, namespace=namespace)
    if reference is None:
        return
    if case.on is None:
        get = f"kubectl get {reference.kind.lower()}"
        yield Finding(
            path=(*trainjob.REFERENCE_PATH, "name"),
            what=f"names {reference.label}, which does not exist",
            fix=f"a name that `{get}{_option(reference.namespace)}` shows",
        )
    elif raw.at(case.on, ("metadata", "deletionTimestamp")):
        yield Finding(
            path=(*trainjob.REFERENCE_PATH, "name"),
            what=f"names {reference.label}, which is being deleted",
            fix="another runtime, or wait and create this one again",
        )


def _option(namespace: str) -> str:
    return f" -n {namespace}" if namespace else ""


RULE = Rule(
    id="TFA015",
    name="runtime-exists",
    subjects=frozenset({"trainjob"}),
    level="warn",
    why="without it there are no pods",
    check=check,
)
