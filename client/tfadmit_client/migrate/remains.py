"""What a pod template still holds of TFJob's own world: names of its Services, labels of its pods.

Pure. Nothing is changed: what such a text is for, only its author knows.
"""

import re
from collections.abc import Iterator

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import tfjob
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_OPERATOR = "training.kubeflow.org/"
_PLACEMENT = ("affinity", "topologySpreadConstraints")


def tell(
    job: tfjob.TFJob, *, spec: raw.JsonObject, at: raw.Path, to: raw.Path, ledger: book.Ledger
) -> None:
    """Tell of addresses in what programs are given, and of selectors for the operator's labels.

    `at` is where the template stood, `to` where it stands now.
    """
    known = re.compile(rf"\b{re.escape(job.name)}-(chief|master|worker|ps|evaluator)-(\d+)\b")
    for path, text in _texts(spec):
        if found := known.search(text):
            ledger.missing(
                (*at, *path),
                f"holds the address {found[0]}, which TFJob's Service gave and nothing gives now",
                to=book.runtime(*to, *path),
                advice=f"read TF_CONFIG, or write {_renamed(job, found[1], found[2])}",
            )
    for name in _PLACEMENT:
        for path, text in _keys(spec.get(name), at=("spec", name)):
            if text.startswith(_OPERATOR):
                ledger.missing(
                    (*at, *path),
                    f"looks for the label {text}, which only the training operator sets",
                    to=book.runtime(*to, *path),
                    advice=_label(job, text),
                )


def _renamed(job: tfjob.TFJob, kind: str, index: str) -> str:
    role = "chief" if kind == "master" else kind
    name = tfjob.STEP_CONTAINER if job.step.role == role else role
    return f"{job.name}-{name}-0-{index}.{job.name}"


def _label(job: tfjob.TFJob, text: str) -> str:
    part = text.removeprefix(_OPERATOR)
    if part == "job-name":
        return f"`{contract.JOBSET_NAME_LABEL}: {job.name}`"
    if part == "replica-type":
        return f"`{contract.REPLICATED_JOB_LABEL}`, with the names of the replicated jobs"
    return "a label of your own on the pod template"


def _texts(spec: raw.JsonObject) -> Iterator[tuple[raw.Path, str]]:
    """Give the texts that containers are given, each with its place in the pod."""
    for kind in ("containers", "initContainers"):
        for index, item in enumerate(map(raw.mapping, raw.sequence(spec.get(kind)))):
            at = ("spec", kind, index)
            for name in ("command", "args"):
                for number, text in enumerate(raw.sequence(item.get(name))):
                    yield (*at, name, number), raw.text(text)
            for number, entry in enumerate(map(raw.mapping, raw.sequence(item.get("env")))):
                yield (*at, "env", number, "value"), raw.text(entry.get("value"))


def _keys(value: object, *, at: raw.Path) -> Iterator[tuple[raw.Path, str]]:
    """Give the label keys that a selector names, each with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            if at[-1:] == ("matchLabels",):
                yield (*at, key), key
            elif key == "key" and isinstance(item, str):
                yield (*at, key), item
            else:
                yield from _keys(item, at=(*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _keys(item, at=(*at, index))
