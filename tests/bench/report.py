"""Tables for people and one JSON file for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.rounds import Spread


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in the form of Markdown, so that it can be pasted into a document."""
    all_rows = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in all_rows) for column in range(len(head))]
    lines = [_line(row, widths) for row in all_rows]
    lines.insert(1, _line(["-" * width for width in widths], widths))
    return "\n".join(lines)


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_spread(found: Spread) -> str:
    """The median, and between which values it lies."""
    return f"{number(found.median)} ({number(found.low)}-{number(found.high)})"


def plain(found: Mapping[str, Spread]) -> dict[str, Any]:
    """Spreads as JSON has them."""
    return {
        name: {key: round(value, 4) for key, value in vars(one).items()}
        for name, one in found.items()
    }


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write the JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"\nall figures: {path}")


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
    return f"| {' | '.join(cells)} |"
