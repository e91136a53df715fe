"""The rules, and the judging of an object by all of them at once.

Rules are found by their file name, so that a new rule is one new file. The same code serves the
webhook, `tfadmit lint` and `tfadmit audit`. No rule is named here.
"""

import functools
import importlib
import pkgutil

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Finding, Rule, Subject, Violation
from tfadmit_webhook.settings import Settings

__all__ = ["Finding", "Rule", "Subject", "Violation", "judge", "rules", "unknown_ids"]


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
    violations = [
        Violation(rule=rule, finding=finding, level=level)
        for rule in rules()
        if rule.subject == subject
        and (level := settings.policies.get(rule.id, rule.level)) != "off"
        for finding in rule.check(content)
    ]
    return tuple(sorted(violations, key=lambda item: (raw.dotted(item.finding.path), item.rule.id)))


def unknown_ids(settings: Settings) -> list[str]:
    """Give the identifiers in the settings that name no rule."""
    known = {rule.id for rule in rules()}
    return sorted(set(settings.policies) - known)
