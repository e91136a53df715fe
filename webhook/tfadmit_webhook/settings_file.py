"""From the text of the settings file to `Settings`, or to every fault in it at once.

Also the published JSON schema, made from the same classes and the same bounds. No I/O: whoever
calls reads the file. Whether a rule identifier exists is not known here (`policy` knows).
"""

import difflib
import json
from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from tfadmit_webhook import (
    raw,
    settings_bounds,
    settings_duration,
    settings_overrides,
    settings_transfer,
    settings_yaml,
)
from tfadmit_webhook.selector import LabelSelector, Requirement
from tfadmit_webhook.settings import (
    Certificates,
    Exemption,
    NetworkProfile,
    Override,
    Server,
    Settings,
    Transfer,
)
from tfadmit_webhook.settings_yaml import Fault

__all__ = ["Fault", "json_schema", "load"]

_CLASSES = (
    Certificates,
    Exemption,
    LabelSelector,
    NetworkProfile,
    Override,
    Requirement,
    Server,
    Settings,
    Transfer,
)
_LISTS = ("networkProfiles", "overrides", "exemptions")
_SECTIONS = ("server", "certificates", "transfer")
_SCHEMA_ID = "https://tfadmit.dev/settings.schema.json"

_CONFIG = ConfigDict(
    alias_generator=to_camel,
    extra="forbid",
    strict=True,
    use_attribute_docstrings=True,
)
for _class in _CLASSES:
    # The attribute where pydantic looks; the module of the classes stays free of pydantic.
    _class.__pydantic_config__ = _CONFIG  # type: ignore[union-attr]
_ADAPTER = TypeAdapter(Settings)


def load(text: str, *, rules: Collection[str]) -> Settings | list[Fault]:
    """Read the settings file; what it does not state keeps its default.

    `rules` are the identifiers that exist; they are known above this module.
    """
    values = settings_yaml.load(text)
    if isinstance(values, list):
        return values
    stated = _without_nulls(values)
    found = (*_bounds(stated), *_unknown_rules(stated, rules))
    faults = [Fault(path=raw.dotted(path), message=words) for path, words in found]
    try:
        settings = _ADAPTER.validate_json(json.dumps(stated))
    except ValidationError as error:
        faults += [_fault(item) for item in error.errors(include_url=False)]
    else:
        if not faults:
            return settings
    return sorted(faults, key=lambda fault: fault.path)


def json_schema() -> dict[str, Any]:
    """Give the JSON schema of the settings file, for editors and for docs/settings.schema.json."""
    schema = _ADAPTER.json_schema(by_alias=True)
    _drop_titles(schema)
    for path, bound in settings_bounds.NUMBERS.items():
        owner = schema if len(path) == 1 else schema["$defs"][path[0].capitalize()]
        limits = {"minimum": bound.low, "maximum": bound.high}
        owner["properties"][path[-1]] |= limits
    for name in settings_bounds.DURATIONS:
        schema["$defs"]["Certificates"]["properties"][name] |= {
            "pattern": settings_duration.PATTERN
        }
    for name in settings_bounds.EXEMPTION_TEXTS:
        schema["$defs"]["Exemption"]["properties"][name] |= {"pattern": r"\S"}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _SCHEMA_ID,
        "title": "tfadmit settings",
    }
    return head | schema


def _bounds(values: dict[str, Any]) -> Iterator[tuple[raw.Path, str]]:
    yield from settings_bounds.number_faults(values)
    yield from settings_bounds.relation_faults(values)
    yield from settings_bounds.duration_faults(values)
    yield from settings_bounds.text_faults(values)
    yield from settings_transfer.faults(values)
    yield from settings_overrides.faults(values)


def _unknown_rules(
    values: dict[str, Any], rules: Collection[str]
) -> Iterator[tuple[raw.Path, str]]:
    for path in (("policies",), *settings_overrides.policies(values)):
        for name in raw.mapping(raw.at(values, path)):
            if name not in rules:
                yield (*path, name), f"no such rule: use {', '.join(rules)}"
    for index, item in enumerate(raw.sequence(values.get("exemptions"))):
        rule = raw.mapping(item).get("rule")
        if isinstance(rule, str) and rule not in rules:
            why = f"there is no rule {rule!r}: use {', '.join(rules)}"
            yield ("exemptions", index, "rule"), why


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out settings without a value, as Kubernetes does; in `env` and `policies` they stay."""
    kept = {key: value for key, value in values.items() if value is not None}
    for name in _SECTIONS:
        if isinstance(section := kept.get(name), dict):
            kept[name] = {key: value for key, value in section.items() if value is not None}
    for name in _LISTS:
        if isinstance(items := kept.get(name), list):
            kept[name] = [
                {key: value for key, value in item.items() if value is not None}
                if isinstance(item, dict)
                else item
                for item in items
            ]
    return kept


def _fault(item: ErrorDetails) -> Fault:
    path = item["loc"]
    return Fault(path=raw.dotted(path), message=_message(item["type"], path, item["input"], item))


def _message(kind: str, path: raw.Path, value: object, item: ErrorDetails) -> str:
    shown = json.dumps(value)
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"there is no such setting{_suggestion(str(path[-1]))}"
    if kind == "missing":
        return "is missing"
    if value is None:
        return 'has no value: write one, "" for the empty text'
    if kind == "string_type" and isinstance(value, bool | int | float):
        return f'is {shown}, which is no text in YAML: quote it, "{shown}"'
    if kind == "literal_error":
        return f"is {shown}: use {item['ctx']['expected']}"
    wanted = {
        "string_type": "a text",
        "int_type": "a whole number",
        "float_type": "a number",
        "tuple_type": "a list",
        "dict_type": "a mapping of names to values",
        "mapping_type": "a mapping of names to values",
        "dataclass_type": "a mapping of names to values",
    }.get(kind)
    return f"must be {wanted}, not {shown}" if wanted else item["msg"]


def _suggestion(name: str) -> str:
    known = [to_camel(field.name) for kind in _CLASSES for field in fields(kind)]
    close = difflib.get_close_matches(to_camel(name), known, n=1)
    return f": did you mean {close[0]}?" if close else ""


def _drop_titles(schema: object) -> None:
    """Remove the titles that pydantic makes of the names: they say nothing more."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for value in schema.values():
            _drop_titles(value)
