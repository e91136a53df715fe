"""Whom a kubeconfig's user acts as (`as`, `as-groups`), which the Kubernetes client passes over.

As kubectl does: headers of each request (client-go, `transport.ImpersonationConfig`). Values
only; who puts them there is `live_identity`.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from tfadmit_client import fault
from tfadmit_webhook import raw

Header = tuple[str, str]

_WITHOUT: Final = ("as-uid", "as-groups", "as-user-extra")


def user_of(kubeconfig: raw.JsonObject, *, context: str | None) -> raw.JsonObject:
    """Give the user of a context, or of the current one; nothing where there is none."""
    chosen = context or raw.text(kubeconfig.get("current-context"))
    found = _named(kubeconfig.get("contexts"), chosen).get("context")
    name = raw.text(raw.mapping(found).get("user"))
    return raw.mapping(_named(kubeconfig.get("users"), name).get("user"))


def headers(user: raw.JsonObject, *, source: str) -> Sequence[Header]:
    """Give the headers that say it, each as often as it has values.

    Raises:
        ClientError: they say no user, or what cannot stand in a header.
    """
    name = raw.text(user.get("as"))
    stated = [key for key in _WITHOUT if user.get(key)]
    if not name and stated:
        raise fault.ClientError(
            f"{source}: {stated[0]} of the context's user is nothing without as: name the user, too"
        )
    found = list(_headers(user, name)) if name else []
    if odd := next((value for _, value in found if not is_header(value)), None):
        raise fault.ClientError(
            f"{source}: {odd!r}, which the context's user is to act as, has a letter that no "
            "header of HTTP takes"
        )
    return found


def _headers(user: raw.JsonObject, name: str) -> Iterator[Header]:
    yield "Impersonate-User", name
    if uid := raw.text(user.get("as-uid")):
        yield "Impersonate-Uid", uid
    for group in raw.sequence(user.get("as-groups")):
        yield "Impersonate-Group", str(group)
    for key, values in raw.mapping(user.get("as-user-extra")).items():
        for value in raw.sequence(values):
            yield f"Impersonate-Extra-{quote(key, safe='')}", str(value)


def is_header(value: object) -> bool:
    """Whether a value can stand in a header of HTTP."""
    text = str(value)
    return text.isascii() and text.isprintable()


def _named(items: object, name: str) -> raw.JsonObject:
    for item in map(raw.mapping, raw.sequence(items)):
        if item.get("name") == name:
            return item
    return {}
