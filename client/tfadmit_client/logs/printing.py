"""How lines of a log look: for people with the task in front, for programs as JSON. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tfadmit_client.console import plain
from tfadmit_client.logs.line import Line

# Foreground colours of any terminal, without black, white and the red of errors.
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)


@dataclass(kw_only=True)
class Printer:
    """Writes lines; remembers which tasks it has seen, for the width and the colours."""

    coloured: bool = False
    """For a terminal: colours, and of a line that overwrites itself what stays."""

    timestamps: bool = False
    width: int = 0
    _seen: dict[str, int] = field(default_factory=dict)

    def text(self, line: Line) -> str:
        """Write a line with its task in front."""
        number = self._seen.setdefault(line.replica, len(self._seen))
        self.width = max(self.width, len(line.replica))
        head = f"{line.replica:{self.width}} |"
        said = line.text
        if self.coloured:
            head = f"\x1b[{_COLOURS[number % len(_COLOURS)]}m{head}\x1b[0m"
            said = said.rpartition("\r")[2]
        time = f"{line.at} " if self.timestamps and line.at else ""
        return f"{head} {time}{said}".rstrip(" ")


def as_json(line: Line) -> str:
    """Write a line as a JSON object in one line."""
    data: Mapping[str, object] = {
        "replica": line.replica, "attempt": line.attempt, "at": line.at, "text": line.text,
    }  # fmt: skip
    return plain.in_json(json.dumps(data, ensure_ascii=False))
