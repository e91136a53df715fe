"""What is wrong with `overrides` beyond the types: selectors that Kubernetes would refuse.

Checked on the values as they stand in the file; a value of a wrong type is passed by, as in
`settings_bounds`. Pure.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tfadmit_webhook import raw

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
# As the API server checks names and values of labels.
_KEY = re.compile(rf"({_DOMAIN}/)?{_NAME}")
_VALUE = re.compile(rf"({_NAME})?")
_WITH_VALUES = ("In", "NotIn")
_WITHOUT = ("Exists", "DoesNotExist")


def policies(values: Mapping[str, Any]) -> Iterator[raw.Path]:
    """Give the places where overrides state levels."""
    for index, _ in enumerate(raw.sequence(values.get("overrides"))):
        yield ("overrides", index, "policies")


def faults(values: Mapping[str, Any]) -> Iterator[tuple[raw.Path, str]]:
    """Find overrides that change nothing, and selectors that select nothing or are none."""
    for index, item in enumerate(raw.sequence(values.get("overrides"))):
        path: raw.Path = ("overrides", index)
        override = raw.mapping(item)
        if override.get("policies") == {}:
            yield (*path, "policies"), "is empty: write the level of a rule, e.g. `TFA001: warn`"
        selector = raw.mapping(override.get("namespaceSelector"))
        yield from _label_faults(selector, path=(*path, "namespaceSelector", "matchLabels"))
        expressions = raw.sequence(selector.get("matchExpressions"))
        for number, expression in enumerate(expressions):
            inner = (*path, "namespaceSelector", "matchExpressions", number)
            yield from _requirement_faults(raw.mapping(expression), path=inner)


def _label_faults(selector: raw.JsonObject, *, path: raw.Path) -> Iterator[tuple[raw.Path, str]]:
    for key, value in raw.mapping(selector.get("matchLabels")).items():
        if not _KEY.fullmatch(key):
            yield (*path, key), "is no name of a label"
        if isinstance(value, str) and not _VALUE.fullmatch(value):
            yield (*path, key), f"is {value!r}, which no label can be"


def _requirement_faults(
    requirement: raw.JsonObject, *, path: raw.Path
) -> Iterator[tuple[raw.Path, str]]:
    key, operator = requirement.get("key"), requirement.get("operator")
    values = requirement.get("values")
    if isinstance(key, str) and not _KEY.fullmatch(key):
        yield (*path, "key"), f"is {key!r}, which is no name of a label"
    if operator in _WITH_VALUES and (values is None or values == []):
        yield (*path, "values"), f"is missing: {operator} compares with one or more"
    if operator in _WITHOUT and raw.sequence(values):
        yield (*path, "values"), f"must be left out: {operator} looks at the key only"
    for index, value in enumerate(raw.sequence(values)):
        if isinstance(value, str) and not _VALUE.fullmatch(value):
            yield (*path, "values", index), f"is {value!r}, which no label can be"
