"""The rules, and the judging of an object by all of them at once.

Rules are found by their file name, so that a new rule is one new file. The same code serves the
webhook, `tfadmit lint` and `tfadmit audit`. No rule is named here.
"""

import functools
import importlib
import pkgutil

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule, Subject, Violation
from tfadmit_webhook.settings import Settings

__all__ = ["Case", "Finding", "Rule", "Subject", "Violation", "ids", "judge", "rules"]


@functools.lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Give all rules in the order of their identifiers."""
    names = sorted(
        module.name for module in pkgutil.iter_modules(__path__) if module.name.startswith("tfa")
    )
    found = (importlib.import_module(f"{__name__}.{name}").RULE for name in names)
    return tuple(found)


def judge(
    content: raw.JsonObject, *, subject: Subject, settings: Settings
) -> tuple[Violation, ...]:
    """Give every violation, ordered by path and then by rule; rules that are off are not asked."""
    case = Case(content=content, settings=settings, jobs=runtime.jobs(content))
    violations = [
        Violation(rule=rule, finding=finding, level="warn" if finding.only_warn else level)
        for rule in rules()
        if rule.subject == subject
        and (level := settings.policies.get(rule.id, rule.level)) != "off"
        for finding in rule.check(case)
    ]
    return tuple(sorted(violations, key=lambda item: (raw.dotted(item.finding.path), item.rule.id)))


def ids() -> tuple[str, ...]:
    """Give the identifiers of all rules."""
    return tuple(rule.id for rule in rules())
