"""Rules by which the controllers merge lists and maps. Pure; copies what it changes.

`upsert` is Trainer's (`pkg/apply`), `strategic` is Kubernetes' strategic merge patch for the lists
that occur in TrainJob patches, with its order of items.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tfadmit_webhook import raw

# Lists that merge by a key (`patchMergeKey` in the Go types); all others are replaced.
_MERGE_KEYS: Mapping[str, str] = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "claims": "name",
}


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON has any type
    """Copy a value as Go's typed objects keep it: null is absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def upsert(items: object, updates: object, *, key: str) -> list[Any]:
    """Replace the first item of the same key in its place, else append."""
    merged = list(raw.sequence(items))
    for update in raw.sequence(updates):
        wanted = raw.mapping(update).get(key)
        for index, item in enumerate(merged):
            if raw.mapping(item).get(key) == wanted:
                merged[index] = update
                break
        else:
            merged.append(update)
    return merged


def strategic(original: Any, patch: Any, *, field: str = "") -> Any:  # noqa: ANN401 - JSON has any type
    """Merge a patch into a value; `field` is the name under which the value stands."""
    if isinstance(original, dict) and isinstance(patch, dict):
        merged = {
            key: strategic(original[key], item, field=key) if key in original else item
            for key, item in patch.items()
        }
        return {**original, **merged}
    if isinstance(original, list) and isinstance(patch, list) and field in _MERGE_KEYS:
        return _list(original, patch, key=_MERGE_KEYS[field])
    return patch


def _list(original: Sequence[Any], patch: Sequence[Any], *, key: str) -> list[Any]:
    before = {raw.text(raw.mapping(item).get(key)): item for item in original}
    patched = {raw.text(raw.mapping(item).get(key)): item for item in patch}
    merged = {
        name: strategic(before[name], item) if name in before else item
        for name, item in patched.items()
    }
    kept = [name for name in before if name not in patched]
    order = {name: index for index, name in enumerate(before)}
    return [merged.get(name, before.get(name)) for name in _interleaved(kept, list(merged), order)]


def _interleaved(kept: list[str], patched: list[str], order: Mapping[str, int]) -> list[str]:
    """Order the items as `mergeSortedSlice` does: the patch's order rules, new items come early."""
    result: list[str] = []
    left, right = kept[::-1], patched[::-1]
    while left and right:
        both_known = right[-1] in order
        result.append((left if both_known and order[left[-1]] < order[right[-1]] else right).pop())
    return result + left[::-1] + right[::-1]
