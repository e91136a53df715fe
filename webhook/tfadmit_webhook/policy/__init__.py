"""The rules, and the judging of an object by all of them at once.

Rules are found by their file name, so that a new rule is one new file. The same code serves the
webhook, `tfadmit lint` and `tfadmit audit`. No rule is named here.
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from tfadmit_webhook import raw, runtime, trainjob
from tfadmit_webhook.policy import exempt, levels
from tfadmit_webhook.policy.rule import Case, Finding, Rule, Subject, Violation
from tfadmit_webhook.settings import Level, Settings

__all__ = [
    "Case",
    "Finding",
    "Rule",
    "Subject",
    "Violation",
    "depends_on_namespace",
    "ids",
    "judge_runtime",
    "judge_trainjob",
    "rules",
]


@functools.lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Give all rules in the order of their identifiers."""
    names = sorted(
        module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith("tfa")
    )
    found = (importlib.import_module(f"{__name__}.{name}").RULE for name in names)
    return tuple(found)


Labels = Mapping[str, str] | None
"""Labels of a namespace; None when they could not be read."""

_NO_LABELS: Mapping[str, str] = {}


def judge_runtime(
    content: raw.JsonObject,
    *,
    settings: Settings,
    namespace: str = "",
    labels: Labels = _NO_LABELS,
) -> tuple[Violation, ...]:
    """Give every violation of a runtime, those included that the settings exempt it from.

    `namespace` is where the object will be, if it does not say so itself, and `labels` are the
    namespace's: exemptions and overrides go by them.
    """
    jobs = runtime.jobs(content)
    case = Case(subject="runtime", content=content, settings=settings, jobs=jobs)
    return _judge(case, namespace=namespace, labels=labels)


def judge_trainjob(
    content: raw.JsonObject,
    *,
    on: raw.JsonObject | None,
    settings: Settings,
    namespace: str = "",
    labels: Labels = _NO_LABELS,
) -> tuple[Violation, ...]:
    """Give every violation of a TrainJob on a runtime, which is None if there is none.

    As for runtimes, exempted ones are included, and `namespace` and `labels` are its place.
    """
    jobs = () if on is None else trainjob.jobs(content, on)
    case = Case(subject="trainjob", content=content, settings=settings, jobs=jobs, on=on)
    return _judge(case, namespace=namespace, labels=labels)


def depends_on_namespace(content: raw.JsonObject, settings: Settings) -> bool:
    """Whether judging an object takes the labels of its namespace."""
    return levels.depend_on_namespace(content, settings)


def _judge(case: Case, *, namespace: str, labels: Labels) -> tuple[Violation, ...]:
    """Judge by all rules, ordered by path and then by rule; rules that are off are not asked."""
    place = raw.text(raw.at(case.content, ("metadata", "namespace"))) or namespace
    if labels is not None:
        labels = {levels.NAME_LABEL: place, **labels}
    violations: list[Violation] = []
    for rule in rules():
        level = levels.level(case, rule, labels=labels)
        if case.subject not in rule.subjects or level == "off":
            continue
        why = exempt.reason(rule.id, case.content, namespace=place, settings=case.settings)
        for finding in rule.check(case):
            actual: Level = "off" if why else "warn" if finding.only_warn else level
            violations.append(Violation(rule=rule, finding=finding, level=actual, exempted=why))
    return tuple(sorted(violations, key=lambda item: (raw.dotted(item.finding.path), item.rule.id)))


def ids() -> tuple[str, ...]:
    """Give the identifiers of all rules."""
    return tuple(rule.id for rule in rules())
