"""How strictly a rule is applied to an object: the settings, and the overrides of its namespace.

Overrides are taken in their order: the first that matches the namespace and states the rule
decides. Pure.
"""

from collections.abc import Mapping

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Rule
from tfadmit_webhook.settings import Level, Settings

# The API server gives it to every namespace; who matches names needs no look-up in files.
NAME_LABEL = "kubernetes.io/metadata.name"
_CLUSTER_WIDE = "ClusterTrainingRuntime"
_STRICTNESS: Mapping[Level, int] = {"off": 0, "warn": 1, "deny": 2}


def level(case: Case, rule: Rule, *, labels: Mapping[str, str] | None) -> Level:
    """Give the level of a rule for an object whose namespace has these labels.

    None says that they are not known: of the levels that could apply the strictest is given.
    """
    settings = case.settings
    general = settings.policies.get(rule.id, rule.level)
    if not depend_on_namespace(case.content, settings):
        return general
    if labels is None:
        possible = [
            item.policies[rule.id] for item in settings.overrides if rule.id in item.policies
        ]
        return max(general, *possible, key=_STRICTNESS.__getitem__) if possible else general
    for item in settings.overrides:
        if rule.id in item.policies and item.namespace_selector.matches(labels):
            return item.policies[rule.id]
    return general


def depend_on_namespace(content: raw.JsonObject, settings: Settings) -> bool:
    """Whether the levels for an object depend on labels; a runtime of the cluster has none."""
    return bool(settings.overrides) and content.get("kind") != _CLUSTER_WIDE
