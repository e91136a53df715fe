"""Which option of `tfadmit run` wrote a field of a TrainJob. Pure.

Rules, Trainer and the API server speak of fields; the user has written options.
"""

import re
from collections.abc import Mapping
from typing import Final

from tfadmit_client.submit import objects
from tfadmit_webhook import raw

_FIELDS: Final[Mapping[str, str]] = {
    "metadata.name": "--name",
    "spec.trainer.numNodes": "--workers",
    "spec.trainer.image": "--image",
    "spec.activeDeadlineSeconds": "--deadline",
}
_AMOUNTS: Final[Mapping[str, str]] = {"cpu": "--cpu", "memory": "--memory"}
_ANY_AMOUNT: Final = "--cpu, --memory and --gpu"
_FIELD: Final = re.compile(r"(?<![\w.])(?:spec|metadata)(?:\.\w+|\[[^\]\s]+\])+")
_ENV: Final = re.compile(r"spec\.trainer\.env\[(\d+)\](.*)")
_RESOURCES: Final = re.compile(r"spec\.trainer\.resourcesPerNode(?:\.\w+(?:\.(\w+)|\[.+\])?)?")
_PATCH: Final = re.compile(
    r"spec\.runtimePatches\[(\d+)\]\.trainingRuntimeSpec\.template\.spec\.replicatedJobs\[\d+\]"
    r"\.template\.spec\.template\.spec\.(.+)"
)


def of(field: str, trainjob: raw.JsonObject) -> str:
    """Give the option, with what is meant of it; a field that no option wrote stays as it is."""
    if option := _FIELDS.get(field):
        return option
    if found := _ENV.fullmatch(field):
        entry = raw.mapping(_item(raw.at(trainjob, ("spec", "trainer", "env")), found[1]))
        if name := raw.text(entry.get("name")):
            return f"--env {name}"
    if found := _RESOURCES.fullmatch(field):
        return _AMOUNTS.get(found[1] or "", _ANY_AMOUNT)
    if found := _PATCH.fullmatch(field):
        patch = raw.mapping(_item(raw.at(trainjob, ("spec", "runtimePatches")), found[1]))
        if patch.get("manager") == objects.PATCH_MANAGER:
            return f"--patch {found[2]}"
    return field


def within(text: str, trainjob: raw.JsonObject) -> str:
    """Put options in the place of fields in a sentence."""
    return _FIELD.sub(lambda found: of(found[0], trainjob), text)


def _item(value: object, index: str) -> object:
    items = raw.sequence(value)
    return items[int(index)] if int(index) < len(items) else None
