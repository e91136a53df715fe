"""Plain values that the API reads otherwise than YAML writes them: quantities, and text. Pure.

A quantity may be a number and is kept as text. Everything else that the API wants as text it
refuses as a number or a boolean: an unquoted `value: 3` is the most frequent mistake there is.
"""

from collections.abc import Iterator
from typing import Any

from tfadmit_client.expand.remark import Remark
from tfadmit_webhook import raw


def with_quantities(pod_spec: raw.JsonObject) -> raw.JsonObject:
    """Give a pod's spec with the quantities of its containers as text."""
    changed = dict(pod_spec)
    for kind in ("initContainers", "containers"):
        if kind in changed:
            changed[kind] = [_container(item) for item in raw.sequence(changed[kind])]
    return changed


def _container(item: Any) -> Any:  # noqa: ANN401 - JSON has any type
    resources = raw.mapping(raw.mapping(item).get("resources"))
    lists = {
        kind: {name: str(amount) for name, amount in raw.mapping(resources[kind]).items()}
        for kind in ("limits", "requests")
        if kind in resources
    }
    return {**item, "resources": {**resources, **lists}} if lists else item


def remarks(pod: raw.JsonObject) -> Iterator[Remark]:
    """Find what must be text and is not, in a pod or a pod template."""
    for place, value in _texts(pod):
        if value is not None and not isinstance(value, str):
            text = f"the API server refuses it: {place} is {_kind(value)}"
            yield Remark(text=text, refused=True)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return f'a boolean; quote it: "{str(value).lower()}"'
    if isinstance(value, (int, float)):
        return f'a number; quote it: "{value}"'
    return "a map or a list; it must be text"


def _texts(pod: raw.JsonObject) -> Iterator[tuple[str, object]]:
    for kind in ("labels", "annotations"):
        for name, value in raw.mapping(raw.at(pod, ("metadata", kind))).items():
            yield f"{kind[:-1]} {name}", value
    for kind in ("initContainers", "containers"):
        for item in raw.sequence(raw.at(pod, ("spec", kind))):
            container = raw.mapping(item)
            for entry in raw.sequence(container.get("env")):
                variable = raw.mapping(entry)
                name = f"env {variable.get('name')} of container {container.get('name')}"
                yield name, variable.get("value")
