"""Applies a patch of the webhook to an object, as the API server does.

Pure; the input is never changed. Only the operations that the webhook writes: `add`, `replace` and
`remove` (RFC 6902). Only what lies on the path of an operation is copied, so that ten thousand pods
can share the rest.
"""

from collections.abc import Sequence
from typing import Any

from tfadmit_webhook import raw
from tfadmit_webhook.decision import Operation


class MismatchError(ValueError):
    """A patch that does not fit the document; the text says where and why."""


def apply(document: raw.JsonObject, operations: Sequence[Operation]) -> raw.JsonObject:
    """Give the document after all operations.

    Raises:
        MismatchError: an operation leads nowhere in this document.
    """
    root: dict[str, Any] = dict(document)
    # What is already our own copy, by identity; the values keep the identities from being reused.
    own: dict[int, Any] = {id(root): root}
    for operation in operations:
        steps = _steps(operation["path"])
        parent = root
        try:
            for step in steps[:-1]:
                parent = _own_child(parent, step, own)
            _set(parent, steps[-1], operation)
        except MismatchError as error:
            raise MismatchError(f"{operation['path']}: {error}") from error
    return root


def _steps(pointer: str) -> list[str]:
    if not pointer.startswith("/"):
        raise MismatchError(f"{pointer!r} does not name a place in an object")
    return [word.replace("~1", "/").replace("~0", "~") for word in pointer[1:].split("/")]


def _own_child(parent: Any, step: str, own: dict[int, Any]) -> Any:  # noqa: ANN401 - JSON
    key = _key(parent, step)
    child = parent[key]
    if not isinstance(child, (dict, list)):
        raise MismatchError(f"{step!r} holds neither a map nor a list")
    if id(child) not in own:
        child = child.copy()
        parent[key] = child
        own[id(child)] = child
    return child


def _key(parent: Any, step: str) -> Any:  # noqa: ANN401 - JSON
    if isinstance(parent, list):
        if step.isdecimal() and int(step) < len(parent):
            return int(step)
    elif step in parent:
        return step
    raise MismatchError(f"there is no {step!r}")


def _set(parent: Any, step: str, operation: Operation) -> None:  # noqa: ANN401 - JSON
    if operation["op"] == "remove":
        del parent[_key(parent, step)]
    elif operation["op"] == "replace":
        parent[_key(parent, step)] = operation["value"]
    elif isinstance(parent, dict):
        parent[step] = operation["value"]
    elif step == "-":
        parent.append(operation["value"])
    elif step.isdecimal() and int(step) <= len(parent):
        parent.insert(int(step), operation["value"])
    else:
        raise MismatchError(f"there is a list of {len(parent)} items, without a place {step!r}")
