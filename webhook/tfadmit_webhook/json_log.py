"""Log lines as one JSON object each, for everything in the process that logs.

Here: the format. What is said is decided where it is said: an event name as the message, the rest
as `extra={"fields": {...}}`. Standard library only.
"""

import functools
import json
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import IO, Any

# A refusal quotes what users wrote, and an annotation may have 256 KiB.
_MAX_TEXT = 2000


class Formatter(logging.Formatter):
    """One line per record: time, level, event, its fields, and a traceback as a field."""

    def __init__(self, *, dump: Callable[[object], str] | None = None) -> None:
        """Args: `dump` writes a JSON value in one line; the standard library by default."""
        super().__init__()
        self._dump = dump or functools.partial(json.dumps, default=str)

    def format(self, record: logging.LogRecord) -> str:
        """Write the record."""
        time = datetime.fromtimestamp(record.created, tz=timezone.utc)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": _cut(record.getMessage()),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line |= {name: _cut(value) for name, value in fields.items()}
        else:
            # Somebody else's record: its message is prose, and its origin says what it is about.
            line |= {"event": "log", "logger": record.name, "message": line["event"]}
        if record.exc_info and record.exc_info[1]:
            line["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        return self._dump(line)


def install(stream: IO[str] | None = None) -> None:
    """Send all records of the process, from INFO on, to standard error as JSON."""
    target = logging.StreamHandler(stream or sys.stderr)
    target.setFormatter(Formatter())
    root = logging.getLogger()
    root.handlers = [target]
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    # Connections of the Kubernetes client that are retried are told by `kube` itself.
    logging.getLogger("urllib3").setLevel(logging.ERROR)


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        return f"{value[:_MAX_TEXT]}… ({len(value):,} characters)"
    return value
