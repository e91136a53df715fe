"""A preview as text for people. Pure: a report in, lines out.

Here: columns, folding of long groups, the sentences beside the rows. Not here: what was decided.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tfadmit_client.preview.report import Pod, Report, Runtime, Section
from tfadmit_trainer import contract
from tfadmit_webhook import raw
from tfadmit_webhook.decision import Reason

# Rows at each end of a group that is folded: enough to see the pattern, few enough for a screen.
_ENDS = 5
_NONE = "-"
_HEAD = ("POD", "ROLE", "INDEX", "ADDRESS", "NETWORK", "ATTACHED", "CONTAINERS")
_LEFT_ALONE = {
    Reason.NOT_OURS: f"left as it is: no label {contract.FRAMEWORK_LABEL}: {contract.FRAMEWORK}",
    Reason.OPTED_OUT: f'left as it is: annotation {contract.INJECT_ANNOTATION}: "false"',
    Reason.MIRROR_POD: "left as it is: a mirror pod of a node",
}


@dataclass(frozen=True, kw_only=True)
class _Row:
    name: str
    role: str
    index: str
    address: str
    network: str
    attached: str
    containers: str
    notes: tuple[str, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.name,
            self.role,
            self.index,
            self.address,
            self.network,
            self.attached,
            self.containers,
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """What rows of one foldable group have in common."""
        return self.role, self.network, self.attached, self.containers, self.notes


def render(report: Report, *, everything: bool = False) -> str:
    """Show a report; `everything` shows each pod of a big group."""
    blocks = [*map(_runtime, report.runtimes)]
    blocks += [_section(section, everything=everything) for section in report.sections]
    if report.others:
        blocks.append("\n".join(["Not shown", *(f"  {text}" for text in report.others)]))
    return "\n\n".join([*blocks, _summary(report)])


def _runtime(item: Runtime) -> str:
    decision = item.decision
    verdict = {
        Reason.NOT_OURS: (
            f"no TensorFlow runtime: label {contract.FRAMEWORK_LABEL}: {contract.FRAMEWORK} "
            "is not there, so tfadmit leaves it and its pods alone"
        ),
        Reason.CONFORMS: "accepted",
    }.get(decision.reason, "refused" if not decision.allowed else decision.reason.value)
    lines = [f"{item.manifest.label}  ({item.manifest.source})  {verdict}"]
    lines += [f"  {line}" for line in decision.message.splitlines()]
    lines += [f"  warning: {text}" for text in decision.warnings]
    return "\n".join(lines)


def _section(section: Section, *, everything: bool) -> str:
    item = section.manifest
    runtime = f"  on {section.runtime}" if section.runtime else ""
    lines = [f"{item.label}  ({item.source}){runtime}"]
    rows = [_row(pod) for pod in section.pods]
    shown = list(_folded(rows, everything=everything))
    if rows:
        lines += [f"  {line}" for line in _aligned(shown)]
    else:
        lines.append("  no pods")
    lines += [f"  * {remark.text}" for remark in section.remarks]
    lines += [f"  * {text}" for text in _notes(rows)]
    return "\n".join(lines)


def _row(pod: Pod) -> _Row:
    annotations = raw.strings(raw.at(pod.content, ("metadata", "annotations")))
    status = _status(annotations) if pod.address else {}
    refused = not pod.decision.allowed
    return _Row(
        name=pod.name,
        role="refused" if refused else str(status.get("role", _NONE)),
        index=str(status.get("index", _NONE)),
        address=pod.address or _NONE,
        network=str(status.get("network", _NONE)),
        attached=annotations.get(contract.NETWORKS_ANNOTATION, _NONE),
        containers=",".join(pod.containers) or _NONE,
        notes=tuple(_pod_notes(pod, status)),
    )


def _status(annotations: dict[str, str]) -> raw.JsonObject:
    return raw.mapping(json.loads(annotations.get(contract.STATUS_ANNOTATION, "{}")))


def _pod_notes(pod: Pod, status: raw.JsonObject) -> Iterator[str]:
    decision = pod.decision
    if not decision.allowed:
        yield f"refused ({decision.reason.value}): {decision.message}"
    if pod.note:
        yield pod.note
    elif decision.reason in _LEFT_ALONE:
        yield _LEFT_ALONE[decision.reason]
    if decision.reason is Reason.COMPLETE:
        yield "nothing to add: the pod already carries all of it"
    if status.get("inline") is False:
        yield (
            f"TF_CONFIG travels in compact form: with {status.get('tasks'):,} tasks it would be "
            f"too big for a pod; {contract.CLUSTER_ENV} has the cluster, and tfadmit_trainer "
            "builds TF_CONFIG from it in the container"
        )
    kept = raw.sequence(status.get("kept"))
    if kept:
        yield f"keeps its own {', '.join(kept)}"
    owned = raw.at(pod.content, ("metadata", "ownerReferences"))
    if contract.TF_CONFIG_ENV in kept and owned:
        yield (
            f"its own {contract.TF_CONFIG_ENV} stands in the template, so all pods of a job have "
            "the same index: remove it there"
        )
    yield from (f"warning: {text}" for text in decision.warnings)


def _folded(rows: Sequence[_Row], *, everything: bool) -> Iterator[_Row | str]:
    for _, group in groupby(rows, key=lambda row: row.kind):
        alike = list(group)
        hidden = len(alike) - 2 * _ENDS
        # Folding one or two rows would save nothing.
        if everything or hidden < _ENDS:
            yield from alike
        else:
            yield from alike[:_ENDS]
            yield f"… {hidden:,} more"
            yield from alike[-_ENDS:]


def _aligned(rows: Sequence[_Row | str]) -> Iterator[str]:
    cells = [_HEAD, *(row.cells for row in rows if isinstance(row, _Row))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in (_HEAD, *(row.cells if isinstance(row, _Row) else row for row in rows)):
        if isinstance(row, str):
            yield row
        else:
            padded = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
            yield "  ".join(padded).rstrip()


def _notes(rows: Sequence[_Row]) -> Iterator[str]:
    """Say each sentence once, with the pods it is about where it is not about all."""
    about: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            about.setdefault(note, []).append(row.name)
    for note, names in about.items():
        yield note if len(names) == len(rows) else f"{_some(names)}: {note}"


def _some(names: Sequence[str]) -> str:
    if len(names) <= _ENDS:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names):,} pods)"


def _summary(report: Report) -> str:
    pods = [pod for section in report.sections for pod in section.pods]
    refused = sum(not pod.decision.allowed for pod in pods)
    tasks = sum(bool(pod.address) for pod in pods)
    parts = [f"{_many(len(pods), 'pod')}: {_many(tasks, 'TensorFlow task')}"]
    if refused:
        parts.append(f"{refused:,} refused")
    if alone := len(pods) - refused - tasks:
        parts.append(f"{alone:,} untouched")
    if not pods:
        parts = ["no pods: no TrainJob, JobSet, Job or Pod in the files makes any"]
    runtimes = sum(not item.decision.allowed for item in report.runtimes)
    if runtimes:
        parts.append(f"{_many(runtimes, 'runtime')} refused")
    return ", ".join(parts)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
