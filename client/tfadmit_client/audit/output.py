"""A report on a cluster as people and as machines read it: text, JSON, Prometheus.

Pure: a report in, text out. Prometheus is the exposition format of node_exporter's textfile
collector.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from tfadmit_client.audit import report as audit_report
from tfadmit_client.console import plain


def as_text(report: audit_report.Report, at: float) -> str:  # noqa: ARG001 - a writer
    """Write a line per finding, one for what could not be judged, and a summary."""
    kinds = [item for item in report.failures if not item.object]
    objects = [item for item in report.failures if item.object]
    more = len(objects) - _SHOWN
    return plain.text(
        "\n".join(
            [
                *(f"{_level(item)}: {item.label}: {item.message}" for item in report.findings),
                *(f"not judged: {item.object}: {item.message}" for item in objects[:_SHOWN]),
                *(
                    [f"not judged: {_count(more, 'more object')}; -o json has all"]
                    if more > 0
                    else ()
                ),
                *(f"not (all) read: {item.kind}s: {item.message}" for item in kinds),
                _summary(report),
            ]
        )
    )


def as_json(report: audit_report.Report, at: float) -> str:
    """Write all that is known."""
    return json.dumps(
        {
            "timestamp": at,
            "findings": [dataclasses.asdict(item) for item in report.findings],
            "failures": [dataclasses.asdict(item) for item in report.failures],
            "objects": {
                kind.name: {
                    outcome: report.objects.get((kind.name, outcome), 0) for outcome in _OUTCOMES
                }
                for kind in audit_report.KINDS
            },
        },
        indent=2,
    )


def as_prometheus(report: audit_report.Report, at: float) -> str:
    """Write metrics; a rule without violations has no line."""
    violations = Counter((item.rule, item.level, item.kind) for item in report.findings)
    return "\n".join(
        [
            *_metric(
                "violations",
                "Violations by rule, level and kind of object.",
                (
                    (f'rule="{rule}",level="{level}",kind="{kind}"', number)
                    for (rule, level, kind), number in sorted(violations.items())
                ),
            ),
            *_metric(
                "objects",
                "Objects that were judged, have no rules (skipped), or could not be judged.",
                (
                    (
                        f'kind="{kind.name}",outcome="{outcome}"',
                        report.objects.get((kind.name, outcome), 0),
                    )
                    for kind in audit_report.KINDS
                    for outcome in _OUTCOMES
                ),
            ),
            *_metric(
                "kind_read",
                "Whether all objects of a kind could be read.",
                (
                    (f'kind="{kind.name}"', int(report.is_read(kind.name)))
                    for kind in audit_report.KINDS
                ),
            ),
            *_metric(
                "last_run_timestamp_seconds", "When the cluster was judged.", [("", f"{at:.3f}")]
            ),
        ]
    )


# When a kind of runtime may not be listed, each TrainJob on one is a failure of its own.
_SHOWN = 20
_OUTCOMES: tuple[audit_report.Outcome, ...] = ("judged", "skipped", "failed")
WRITERS: Mapping[str, Callable[[audit_report.Report, float], str]] = {
    "text": as_text,
    "json": as_json,
    "prometheus": as_prometheus,
}


def _metric(name: str, text: str, samples: Iterable[tuple[str, object]]) -> list[str]:
    full = f"tfadmit_audit_{name}"
    series = [(f"{full}{{{labels}}}" if labels else full, value) for labels, value in samples]
    lines = [f"{one} {value}" for one, value in series]
    return [f"# HELP {full} {text}", f"# TYPE {full} gauge", *lines]


def _level(item: audit_report.Finding) -> str:
    return "error" if item.level == "deny" else "warning"


def _summary(report: audit_report.Report) -> str:
    refused = sum(item.level == "deny" for item in report.findings)
    warned = len(report.findings) - refused
    line = (
        f"{_count(refused, 'violation')}, {_count(warned, 'warning')} in "
        f"{_count(report.count('judged'), 'object')}; {report.count('skipped')} skipped"
    )
    unread = [kind.name for kind in audit_report.KINDS if not report.is_read(kind.name)]
    if failed := report.count("failed"):
        line += f"; {_count(failed, 'object')} not judged"
    return f"{line}; not (all) read: {', '.join(unread)}" if unread else line


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
