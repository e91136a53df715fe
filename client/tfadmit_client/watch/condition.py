"""Conditions of an object that hold: those with status True, whatever else the list has.

`kubectl get trainjob` prints the type of the *last* condition, also when its status is False, and
so says Suspended for the whole run after a resume.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw


def held(content: raw.JsonObject | None, kind: str) -> raw.JsonObject | None:
    """Give the condition of a type when its status is True."""
    for item in _all(content):
        if item.get("type") == kind and item.get("status") == "True":
            return item
    return None


def refused(content: raw.JsonObject | None, kind: str) -> raw.JsonObject | None:
    """Give the condition of a type when its status is False."""
    for item in _all(content):
        if item.get("type") == kind and item.get("status") == "False":
            return item
    return None


def _all(content: raw.JsonObject | None) -> Iterator[raw.JsonObject]:
    yield from map(raw.mapping, raw.sequence(raw.at(content, ("status", "conditions"))))
