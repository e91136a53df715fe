"""Which objects the settings leave alone, and why.

Exemptions are by rule and by the name of the object, so that an exempted object is still judged by
all other rules. Pure.
"""

import fnmatch

from tfadmit_webhook import raw
from tfadmit_webhook.settings import Exemption, Settings

_CLUSTER_WIDE = "ClusterTrainingRuntime"


def reason(rule: str, content: raw.JsonObject, *, namespace: str, settings: Settings) -> str:
    """Give the reason of the first exemption of an object from a rule; empty when there is none.

    `namespace` is where the object will be, whether or not it says so itself.
    """
    if not settings.exemptions:
        return ""
    kind = raw.text(content.get("kind"))
    name = raw.text(raw.at(content, ("metadata", "name")))
    place = "" if kind == _CLUSTER_WIDE else namespace
    for item in settings.exemptions:
        if item.rule == rule and _matches(item, kind=kind, name=name, namespace=place):
            return " ".join(item.reason.split())
    return ""


def _matches(item: Exemption, *, kind: str, name: str, namespace: str) -> bool:
    if item.kind is not None and item.kind != kind:
        return False
    place = item.namespace
    if place is not None and not (namespace and fnmatch.fnmatchcase(namespace, place)):
        return False
    return fnmatch.fnmatchcase(name, item.name)
