"""Jobs as people and as programs read them. Pure: values in, text out.

The field names of `as_data` are an interface: they are only added to.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from tfadmit_client.console import plain
from tfadmit_client.watch import job

_GAP = "   "


def as_data(item: job.Job) -> dict[str, Any]:
    """Give a job as JSON has it."""
    return {
        "namespace": item.namespace,
        "name": item.name,
        "state": item.state.word,
        "restarts": item.state.restarts,
        "attempt": item.attempt,
        "reason": {"code": item.reason.code, "text": item.reason.text},
        "runtime": item.runtime,
        "queue": item.queue,
        "created": item.created,
        "ended": item.ended,
        "roles": {role: dataclasses.asdict(count) for role, count in item.roles.items()},
        "progress": item.progress,
        "remainingSeconds": item.remaining,
        "metrics": dict(item.metrics),
    }


def as_table(
    jobs: Sequence[job.Job], *, now: float, namespaces: bool = False, width: int | None = None
) -> str:
    """Write a line for each job; lines longer than `width` end in an ellipsis."""
    head = ("NAME", "STATE", "NODES", "ATTEMPT", "AGE", "PROGRESS", "REASON")
    rows = [head, *(_row(item, now=now) for item in jobs)]
    if namespaces:
        rows = [
            (place, *row)
            for place, row in zip(
                ("NAMESPACE", *(item.namespace for item in jobs)), rows, strict=True
            )
        ]
    return "\n".join(shortened(line, width=width) for line in aligned(rows))


def dumped(data: object, *, form: str) -> str:
    """Write data as JSON or YAML."""
    if form == "json":
        return plain.in_json(json.dumps(data, indent=2, ensure_ascii=False))
    import yaml  # noqa: PLC0415 - only when it is asked for

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return text.rstrip("\n")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows in columns; the last one ends where its text does."""
    rows = [tuple(map(plain.cell, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def shortened(line: str, *, width: int | None) -> str:
    """End a line where the terminal does."""
    return line if width is None or len(line) <= width else f"{line[: max(width - 1, 0)]}…"


def _row(item: job.Job, *, now: float) -> tuple[str, ...]:
    return (
        item.name,
        item.state.text,
        f"{item.running}/{item.tasks}" if item.tasks else "-",
        str(item.attempt),
        job.age(item, now=now),
        "-" if item.progress is None else f"{item.progress}%",
        item.reason.text or "-",
    )
