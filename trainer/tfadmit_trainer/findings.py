"""What `tfadmit-run --check` found: lines with a level, the verdict, and both forms of output.

Pure. What is looked at stands in `check`, how to look in `probes`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

Level = Literal["ok", "note", "fault"]
"""`note`: known, perhaps on purpose. `fault`: the training will not start, or not as meant."""

_MARKS: Final[dict[Level, str]] = {"ok": " ", "note": "?", "fault": "!"}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    text: str
    level: Level = "ok"


def faults(found: Sequence[Finding]) -> list[Finding]:
    """Give what must be mended."""
    return [finding for finding in found if finding.level == "fault"]


def verdict(found: Sequence[Finding]) -> str:
    """Say in one line whether this task can start."""
    wrong = faults(found)
    if not wrong:
        return "verdict: this task can start"
    topics = ", ".join(dict.fromkeys(finding.topic for finding in wrong))
    count = "1 fault" if len(wrong) == 1 else f"{len(wrong)} faults"
    return f"verdict: {count}, see the lines with ! ({topics})"


def text(found: Sequence[Finding]) -> str:
    """Write for people: one line each, the topic named once."""
    width = max((len(finding.topic) for finding in found), default=0)
    lines, last = [], ""
    for finding in found:
        topic = "" if finding.topic == last else finding.topic
        last = finding.topic
        first, *more = finding.text.splitlines() or [""]
        lines.append(f"{_MARKS[finding.level]} {topic:<{width}}  {first}".rstrip())
        lines += [f"{'':<{width + 4}}{line}" for line in more]
    return "\n".join([*lines, verdict(found)])


def document(found: Sequence[Finding]) -> str:
    """Write for programs."""
    return json.dumps(
        {
            "ok": not faults(found),
            "verdict": verdict(found),
            "findings": [asdict(finding) for finding in found],
        },
        indent=2,
    )
