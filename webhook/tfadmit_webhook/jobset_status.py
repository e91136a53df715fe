"""What was decided about a JobSet, in one short value on it, for people and the command line.

Pure. Also the mark by which an update knows that the JobSet was shaped when it was created.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tfadmit_trainer import contract
from tfadmit_webhook import jobset_view, patch, raw, runtime
from tfadmit_webhook.decision import Operation


def decided(
    content: raw.JsonObject,
    wanted: Sequence[runtime.Job],
    *,
    inherited: Mapping[str, Sequence[str]],
    success: Sequence[str] | None,
) -> list[Operation]:
    """Give the operations that say what was decided; none when nothing was.

    A second round over our own output finds nothing left to inherit, so what the first one wrote
    stays. `wanted` are the tasks if their numbers were asked for.
    """
    before = _written(content)
    status: dict[str, Any] = {"v": contract.VERSION}
    if wanted:
        status["roles"] = totals(wanted)
    if given := {**raw.mapping(before.get("inherited")), **inherited}:
        status["inherited"] = given
    if targets := success or raw.sequence(before.get("success")):
        status["success"] = list(targets)
    if len(status) == 1:
        return []
    return _write(content, json.dumps(status, separators=(",", ":")))


def kept(content: raw.JsonObject, old: raw.JsonObject) -> list[Operation]:
    """Give the operations after which a JobSet says what it said before."""
    return _write(content, jobset_view.annotations(old)[contract.STATUS_ANNOTATION])


def is_shaped(content: raw.JsonObject) -> bool:
    """Whether something was decided when the JobSet was created."""
    return contract.STATUS_ANNOTATION in jobset_view.annotations(content)


def totals(tasks: Sequence[runtime.Job]) -> dict[str, int]:
    """Give the number of tasks of each role that has any."""
    found: dict[str, int] = {}
    for job in tasks:
        found[job.group.role] = found.get(job.group.role, 0) + job.group.size
    return found


def _write(content: raw.JsonObject, status: str) -> list[Operation]:
    return patch.set_entries(
        content, jobset_view.ANNOTATIONS_PATH, {contract.STATUS_ANNOTATION: status}
    )


def _written(content: raw.JsonObject) -> raw.JsonObject:
    text = jobset_view.annotations(content).get(contract.STATUS_ANNOTATION, "")
    try:
        return raw.mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}
