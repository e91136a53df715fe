"""What tfadmit makes of a JobSet before its controller sees it: the sizes and programs of roles.

Pure. The change itself is the webhook's (`tfadmit_webhook.jobset`); here it is applied, and said in
sentences.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tfadmit_client import fault
from tfadmit_client.expand import apply
from tfadmit_client.expand.remark import Remark
from tfadmit_trainer import contract
from tfadmit_webhook import jobset as hook
from tfadmit_webhook import raw
from tfadmit_webhook.decision import Refusal


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A JobSet with its roles; None when it is refused."""

    jobset: raw.JsonObject | None
    remarks: list[Remark] = field(default_factory=list)


def jobset(content: raw.JsonObject) -> Shape:
    """Give the JobSet as tfadmit admits it; without the framework's label it is not asked.

    Raises:
        ClientError: the JobSet is of no form that the API server takes.
    """
    labels = raw.strings(raw.at(content, ("metadata", "labels")))
    if labels.get(contract.FRAMEWORK_LABEL) != contract.FRAMEWORK:
        return Shape(jobset=content)
    operations = hook.created(content)
    if isinstance(operations, Refusal):
        text = f"the JobSet is refused: {operations.message}"
        return Shape(jobset=None, remarks=[Remark(text=text, refused=True)])
    try:
        changed = apply.apply(content, operations)
    except apply.MismatchError as error:
        name = raw.text(raw.at(content, ("metadata", "name")))
        raise fault.ClientError(
            f"JobSet {name} is not formed as the API wants it, at {error}"
        ) from error
    return Shape(jobset=changed, remarks=[Remark(text=text) for text in _sentences(changed)])


def _sentences(content: raw.JsonObject) -> Iterator[str]:
    annotations = raw.strings(raw.at(content, ("metadata", "annotations")))
    try:
        status = raw.mapping(json.loads(annotations.get(contract.STATUS_ANNOTATION, "{}")))
    except ValueError:
        return
    if roles := raw.mapping(status.get("roles")):
        counts = ", ".join(f"{role} {count}" for role, count in roles.items())
        yield f"roles as {contract.REPLICAS_ANNOTATION} asks for: {counts}"
    for fields, jobs in _grouped(raw.mapping(status.get("inherited"))).items():
        yield f"{', '.join(jobs)}: {fields} of the trainer step, as no image is stated"
    if targets := raw.sequence(status.get("success")):
        yield f"complete when {', '.join(map(str, targets))} is: successPolicy, for these roles"


def _grouped(inherited: Mapping[str, object]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for job, names in inherited.items():
        groups.setdefault(", ".join(map(str, raw.sequence(names))), []).append(job)
    return groups
