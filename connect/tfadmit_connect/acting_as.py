"""Whom a kubeconfig's user acts as (`as`, `as-groups`), which the Kubernetes client passes over.

As kubectl does: headers of each request (client-go, `transport.ImpersonationConfig`). Values
only; who puts them there is `connection`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from tfadmit_connect import fault

Header = tuple[str, str]
Json = Mapping[str, Any]

_WITHOUT: Final = ("as-uid", "as-groups", "as-user-extra")


def headers(user: Json, *, source: str) -> Sequence[Header]:
    """Give the headers that say it, each as often as it has values.

    Raises:
        ConnectError: they say no user, or what cannot stand in a header.
    """
    name = str(user.get("as") or "")
    stated = [key for key in _WITHOUT if user.get(key)]
    if not name and stated:
        raise fault.ConnectError(
            f"{source}: {stated[0]} of the context's user is nothing without as: name the user, too"
        )
    found = list(_headers(user, name)) if name else []
    if odd := next((value for _, value in found if not is_header(value)), None):
        raise fault.ConnectError(
            f"{source}: {odd!r}, which the context's user is to act as, has a letter that no "
            "header of HTTP takes"
        )
    return found


def is_header(value: object) -> bool:
    """Whether a value can stand in a header of HTTP."""
    text = str(value)
    return text.isascii() and text.isprintable()


def _headers(user: Json, name: str) -> Iterator[Header]:
    yield "Impersonate-User", name
    if uid := user.get("as-uid"):
        yield "Impersonate-Uid", str(uid)
    for group in _list(user, "as-groups"):
        yield "Impersonate-Group", str(group)
    extra = user.get("as-user-extra")
    for key, values in extra.items() if isinstance(extra, Mapping) else ():
        for value in values if isinstance(values, list) else ():
            yield f"Impersonate-Extra-{quote(key, safe='')}", str(value)


def _list(user: Json, key: str) -> Sequence[object]:
    found = user.get(key)
    return found if isinstance(found, list) else ()
