"""Events of the cluster as values, in the order of time.

The scheduler and Trainer write only `eventTime`, older components only `firstTimestamp` and
`lastTimestamp`: all three are read, or the reason why a pod is pending would never be seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tfadmit_client.watch import when
from tfadmit_webhook import raw


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that a component of the cluster said about an object."""

    kind: str
    namespace: str
    name: str
    uid: str
    """Of the object that it is about; may be empty."""

    warning: bool
    reason: str
    message: str
    at: float
    """Seconds since 1970 of the last time; 0 when it is not known."""

    count: int = 1


def parse(content: raw.JsonObject) -> Event:
    """Read an event of the core API."""
    about = raw.mapping(content.get("involvedObject"))
    series = raw.mapping(content.get("series"))
    times = (
        series.get("lastObservedTime"), content.get("lastTimestamp"), content.get("eventTime"),
        content.get("firstTimestamp"), raw.at(content, ("metadata", "creationTimestamp")),
    )  # fmt: skip
    known = (when.seconds(raw.text(item)) for item in times)
    counts = (series.get("count"), content.get("count"))
    return Event(
        kind=raw.text(about.get("kind")),
        namespace=raw.text(about.get("namespace")),
        name=raw.text(about.get("name")),
        uid=raw.text(about.get("uid")),
        warning=content.get("type") == "Warning",
        reason=raw.text(content.get("reason")),
        message=" ".join(raw.text(content.get("message")).split()),
        at=next((item for item in known if item is not None), 0.0),
        count=max((raw.count(item, default=1) for item in counts), default=1),
    )


def latest(
    events: Iterable[Event], *, kind: str, reasons: Iterable[str] = (), name: str = ""
) -> Event | None:
    """Give the last warning about a kind of object, of some reasons, about one object or any."""
    wanted = frozenset(reasons)
    found = [
        item
        for item in events
        if item.warning
        and item.kind == kind
        and (not wanted or item.reason in wanted)
        and (not name or item.name == name)
    ]
    return max(found, key=lambda item: item.at, default=None)
