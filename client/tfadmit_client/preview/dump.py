"""A preview as JSON or YAML for programs: a list with one entry for each pod, written as it goes.

An entry has `pod` (as admitted; when it was refused, as it was sent), `patch` and `decision`.
Pure, but for the stream that it writes to.
"""

import json
from collections.abc import Iterator
from typing import Any, TextIO

import yaml

from tfadmit_client.preview.report import Pod, Report


def as_json(report: Report, stream: TextIO) -> None:
    """Write the list as JSON."""
    separator = "[\n"
    for entry in _entries(report):
        stream.write(separator + json.dumps(entry, indent=2, ensure_ascii=False))
        separator = ",\n"
    stream.write("[]\n" if separator == "[\n" else "\n]\n")


def as_yaml(report: Report, stream: TextIO) -> None:
    """Write the list as YAML, each entry as an item."""
    empty = True
    for entry in _entries(report):
        empty = False
        yaml.dump([entry], stream, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    if empty:
        stream.write("[]\n")


def _entries(report: Report) -> Iterator[dict[str, Any]]:
    for section in report.sections:
        for pod in section.pods:
            yield {"pod": pod.content, "patch": list(pod.patch), "decision": _decision(pod)}


def _decision(pod: Pod) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "allowed": pod.decision.allowed,
        "reason": pod.decision.reason.value,
    }
    if pod.decision.message:
        decision["message"] = pod.decision.message
    if pod.decision.warnings:
        decision["warnings"] = list(pod.decision.warnings)
    return decision


# libyaml is four times faster, where PyYAML was built with it
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Writes shared parts in full: people read them, and pods share what they have in common."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True
