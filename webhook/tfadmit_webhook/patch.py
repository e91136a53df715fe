"""RFC 6902 operations that touch single places of a raw object and nothing else in it.

Knows JSON and JSON pointers (RFC 6901), nothing of Kubernetes. Parents are created only where they
are absent or null; existing maps and lists are never replaced. Where a value of another type stands
in the way, nothing is added: mutating webhooks see custom resources before their schema is checked,
and the API server's own message about the type is the one that helps.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tfadmit_webhook import raw
from tfadmit_webhook.decision import Operation


def pointer(path: raw.Path) -> str:
    """Write a path as a JSON pointer; `~` is escaped first, or `/` would be escaped twice."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def set_entries(document: object, path: raw.Path, entries: Mapping[str, Any]) -> list[Operation]:
    """Give the operations after which the map at `path` has these entries.

    Call it once per map: the operations of a second call would not know the parents that the
    first one creates.
    """
    present = raw.at(document, path)
    if present is None and entries:
        return _create(document, path, dict(entries))
    if not isinstance(present, dict):
        return []
    return [
        _operation("replace" if key in present else "add", (*path, key), value)
        for key, value in entries.items()
        if present.get(key) != value
    ]


def prepend(document: object, path: raw.Path, items: Sequence[Any]) -> list[Operation]:
    """Give the operations after which the list at `path` begins with these items, in this order."""
    present = raw.at(document, path)
    if present is None and items:
        return _create(document, path, list(items))
    if not isinstance(present, list):
        return []
    parent = pointer(path)
    return [
        {"op": "add", "path": f"{parent}/{index}", "value": item}
        for index, item in enumerate(items)
    ]


def remove(path: raw.Path) -> Operation:
    """Give the operation that takes away what is at `path`, which must be there.

    It shifts the items after it: put the removals from one list last, the largest index first.
    """
    return {"op": "remove", "path": pointer(path)}


def _create(document: object, path: raw.Path, value: object) -> list[Operation]:
    """Add a value together with those of its parents that are absent or null."""
    depth = len(path)
    while depth > 1 and raw.at(document, path[: depth - 1]) is None:
        depth -= 1
        value = {str(path[depth]): value}
    # A parent that has another type reads as nothing above, and cannot be added to.
    if not isinstance(raw.at(document, path[: depth - 1]), dict):
        return []
    return [_operation("add", path[:depth], value)]


def _operation(op: Any, path: raw.Path, value: object) -> Operation:  # noqa: ANN401 - a literal
    return {"op": op, "path": pointer(path), "value": value}
