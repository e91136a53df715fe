"""Findings as people and as machines read them: text, JSON, SARIF, GitHub annotations.

Pure: a result in, text out. SARIF is version 2.1.0 (OASIS); GitHub's format is that of its workflow
commands.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tfadmit_client.console import plain
from tfadmit_client.lint.linting import Finding, Result
from tfadmit_trainer import __version__
from tfadmit_webhook import policy, raw
from tfadmit_webhook.settings import Level

_WORDS: Mapping[Level, str] = {"deny": "error", "warn": "warning", "off": "exempted"}
_SARIF_LEVEL = {"deny": "error", "warn": "warning", "off": "note"}
_GITHUB_LEVEL = {"deny": "error", "warn": "warning", "off": "notice"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_text(result: Result) -> str:
    """Write a line per finding, as compilers do, and a summary."""
    lines = [f"{_where(item)}: {_level(item)}: {_message(item)}" for item in result.findings]
    return plain.text("\n".join([*lines, _summary(result)]))


def as_json(result: Result) -> str:
    """Write all that is known of each finding."""
    return json.dumps(
        {
            "findings": [_fields(item) for item in result.findings],
            "judged": result.judged,
            "skipped": result.skipped,
        },
        indent=2,
    )


def as_sarif(result: Result) -> str:
    """Write a SARIF log, which code hosts show beside the lines."""
    driver = {
        "name": "tfadmit",
        "version": __version__,
        "rules": [_sarif_rule(rule) for rule in policy.rules()],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_sarif_result(item) for item in result.findings],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def as_github(result: Result) -> str:
    """Write workflow commands, which GitHub shows beside the lines of a pull request."""
    return "\n".join([*map(_github, result.findings), _summary(result)])


WRITERS: Mapping[str, Callable[[Result], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}


def _summary(result: Result) -> str:
    refused = sum(item.violation.level == "deny" for item in result.findings)
    exempted = sum(bool(item.violation.exempted) for item in result.findings)
    warned = len(result.findings) - refused - exempted
    counts = f"{_count(refused, 'violation')}, {_count(warned, 'warning')}"
    if exempted:
        counts += f", {exempted} exempted"
    return f"{counts} in {_count(result.judged, 'object')}; {result.skipped} without rules skipped"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _where(item: Finding) -> str:
    return f"{item.manifest.file}:{item.position.line}:{item.position.column}"


def _level(item: Finding) -> str:
    """Say how bad it is; of what is exempted, also why it is."""
    word, why = _WORDS[item.violation.level], item.violation.exempted
    return f"{word} ({why})" if why else word


def _message(item: Finding) -> str:
    return f"{item.manifest.label}: {item.violation.sentence}"


def _fields(item: Finding) -> dict[str, Any]:
    violation = item.violation
    return {
        "rule": violation.rule.id,
        "name": violation.rule.name,
        "level": violation.level,
        "exempted": violation.exempted,
        "object": item.manifest.label,
        "path": raw.dotted(violation.finding.path),
        "message": violation.sentence,
        "file": item.manifest.file,
        "line": item.position.line,
        "column": item.position.column,
    }


def _sarif_rule(rule: policy.Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.why},
        "defaultConfiguration": {"level": _SARIF_LEVEL.get(rule.level, "none")},
    }


def _sarif_result(item: Finding) -> dict[str, Any]:
    region = {"startLine": item.position.line, "startColumn": item.position.column}
    location = {"artifactLocation": {"uri": item.manifest.file}, "region": region}
    result = {
        "ruleId": item.violation.rule.id,
        "level": _SARIF_LEVEL[item.violation.level],
        "message": {"text": _message(item)},
        "locations": [{"physicalLocation": location}],
    }
    if why := item.violation.exempted:
        result["suppressions"] = [{"kind": "external", "justification": why}]
    return result


def _github(item: Finding) -> str:
    place = f"file={_property(item.manifest.file)},line={item.position.line}"
    title = f"{item.violation.rule.id} {item.violation.rule.name}"
    if why := item.violation.exempted:
        title = f"{title}: exempted ({why})"
    level = _GITHUB_LEVEL[item.violation.level]
    column, message = item.position.column, _data(_message(item))
    return f"::{level} {place},col={column},title={_property(title)}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
