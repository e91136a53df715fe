"""One job in full, as people and as programs read it. Pure: values in, text out."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from tfadmit_client.jobs import output
from tfadmit_client.watch import detail, job, sentence, when


def as_data(item: detail.Detail) -> dict[str, Any]:
    """Give a job in full as JSON has it; the field names are only added to."""
    return {
        **output.as_data(item.job),
        "image": item.image,
        "command": list(item.command),
        "code": item.source.code,
        "commit": item.source.commit,
        "dirty": item.source.dirty,
        "data": list(item.data),
        "output": item.output,
        "restarted": item.restarted,
        "replicas": [dataclasses.asdict(replica) for replica in item.replicas],
        "events": [
            {
                "at": when.text(event.at) if event.at else "",
                "warning": event.warning,
                "about": f"{event.kind}/{event.name}",
                "reason": event.reason,
                "message": event.message,
                "count": event.count,
            }
            for event in item.events
        ],
    }


def as_text(item: detail.Detail, *, now: float) -> str:
    """Write a job in full: facts, tasks, events."""
    facts = [(f"{name}:", text) for name, text in _facts(item, now=now) if text]
    blocks = ["\n".join(output.aligned(facts))]
    if item.replicas:
        head = ("TASK", "PHASE", "ATTEMPT", "NODE", "POD", "REASON")
        rows = [head, *map(_replica, item.replicas)]
        blocks.append("\n".join(output.aligned(rows)))
    if item.events:
        rows = [("AGE", "ABOUT", "EVENT", "MESSAGE"), *_events(item, now=now)]
        blocks.append("\n".join(output.aligned(rows)))
    return "\n\n".join(blocks)


def _facts(item: detail.Detail, *, now: float) -> Iterator[tuple[str, str]]:
    it = item.job
    yield "Job", f"{it.namespace}/{it.name}"
    yield "State", it.state.text
    yield "Why", it.reason.text
    yield "Runtime", it.runtime
    yield "Queue", it.queue
    yield "Age", job.age(it, now=now)
    yield "Took", _took(it)
    yield "Attempt", str(it.attempt)
    yield "Restarted", sentence.cut(item.restarted)
    yield "Progress", _progress(it)
    yield "Image", item.image
    yield "Command", sentence.cut(item.command_line)
    yield "Code", item.source.code and f"sha256:{item.source.code}"
    yield "Commit", item.source.commit + (" with changes" if item.source.dirty else "")
    yield "Data", ", ".join(item.data)
    yield "Results", item.output


def _took(it: job.Job) -> str:
    begun, ended = when.seconds(it.created), when.seconds(it.ended)
    return when.length(ended - begun) if begun is not None and ended is not None else ""


def _progress(it: job.Job) -> str:
    words = [] if it.progress is None else [f"{it.progress}%"]
    words += [] if it.remaining is None else [f"{when.length(it.remaining)} left"]
    return ", ".join([*words, *(f"{name} {value}" for name, value in it.metrics.items())])


def _replica(replica: detail.Replica) -> tuple[str, ...]:
    cells = (replica.phase, str(replica.attempt), replica.node, replica.pod, replica.reason)
    return (replica.name, *(cell or "-" for cell in cells))


def _events(item: detail.Detail, *, now: float) -> Iterator[tuple[str, ...]]:
    for event in item.events:
        age = when.length(now - event.at) if event.at else "-"
        often = f" (x{event.count})" if event.count > 1 else ""
        yield age, f"{event.kind}/{event.name}", event.reason, f"{event.message}{often}"
