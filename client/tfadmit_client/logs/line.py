"""One line of the log of a task."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line without its line feed."""

    replica: str
    """Role and index, `worker-0`."""

    attempt: int
    """How often all tasks had been started again."""

    text: str
    at: str = ""
    """RFC 3339, from the container runtime; empty where it is not known."""
