"""What a pod asks for by the annotations of data and results, and whether it can have it.

Pure. How the pod gets it is `storage_pod`. What a URI is belongs to `tfadmit_transfer`, whose
programs read the same texts in the pod.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_transfer import fault, inputs, uri
from tfadmit_webhook import raw, workload
from tfadmit_webhook.decision import Reason, Refusal
from tfadmit_webhook.settings import Transfer

# A Secret's name, as Kubernetes wants it.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Data to bring, and where results go."""

    job: str
    run: str
    """The uid of the JobSet or Job; empty when nothing tells it."""

    inputs: tuple[inputs.Input, ...]
    output: uri.Uri | None
    secret: str


def wish(view: workload.Pod, *, settings: Transfer) -> Wish | Refusal | None:
    """Give what a pod or a template asks for, None when it asks for nothing."""
    stated = view.annotations
    data = stated.get(contract.DATA_ANNOTATION, "")
    output = stated.get(contract.OUTPUT_ANNOTATION, "").strip()
    if not data.strip() and not output:
        return None
    try:
        found = inputs.parse(data)
    except fault.RefusedError as error:
        return _refusal(contract.DATA_ANNOTATION, str(error))
    try:
        base = uri.output(output) if output else None
    except fault.RefusedError as error:
        return _refusal(contract.OUTPUT_ANNOTATION, str(error))
    name, run = _owner(view)
    wanted = Wish(
        job=name,
        run=run,
        inputs=found,
        output=base,
        secret=stated.get(contract.STORE_SECRET_ANNOTATION, "").strip(),
    )
    return _not_possible(wanted, settings) or wanted


def of_pod(view: workload.Pod, *, settings: Transfer) -> Wish | Refusal | None:
    """Give what a pod asks for; other than a template it has to belong to a job."""
    found = wish(view, settings=settings)
    if isinstance(found, Wish) and found.output and not found.job:
        words = "the pod belongs to no JobSet or Job, whose name its results would have"
        return _refusal(contract.OUTPUT_ANNOTATION, words)
    return found


def is_saver(task: contract.Task) -> bool:
    """Whether a task is the one that saves: the chief, or worker 0 where there is none."""
    if task.cluster.size("chief"):
        return task.role == "chief"
    return task.role == "worker" and task.index == 0


def _owner(view: workload.Pod) -> tuple[str, str]:
    owner, uid = view.owner_job or ("", "")
    name = view.labels.get(contract.JOBSET_NAME_LABEL) or owner
    metadata = raw.mapping(view.content.get("metadata"))
    run = view.annotations.get(contract.JOBSET_UID_ANNOTATION) or uid
    return name or raw.text(metadata.get("name")), run


def _not_possible(wanted: Wish, settings: Transfer) -> Refusal | None:
    if wanted.secret and not _NAME.fullmatch(wanted.secret):
        words = f"{wanted.secret!r} is no name of a Secret: write that of one in this namespace"
        return _refusal(contract.STORE_SECRET_ANNOTATION, words)
    for item in wanted.inputs:
        if words := _not_allowed(item.uri, settings.host_paths):
            return _refusal(contract.DATA_ANNOTATION, words)
    if wanted.output and (words := _not_allowed(wanted.output, settings.host_paths)):
        return _refusal(contract.OUTPUT_ANNOTATION, words)
    return None


def _not_allowed(where: uri.Uri, allowed: Sequence[str]) -> str:
    """Say why a folder of the node may not be mounted; empty when it may, or is none."""
    if where.scheme != "file":
        return ""
    path = f"/{where.path.strip('/')}"
    for folder in allowed:
        if path == folder.rstrip("/") or path.startswith(f"{folder.rstrip('/')}/"):
            return ""
    known = ", ".join(allowed) or "none"
    return (
        f"{where} is a folder of the node, and the platform allows {known} (transfer.hostPaths in "
        "the settings of tfadmit): use an object store or pvc://claim/folder"
    )


def _refusal(annotation: str, words: str) -> Refusal:
    return Refusal(reason=Reason.ANNOTATION_INVALID, message=f"annotation {annotation}: {words}")
