"""What the texts of options mean: quantities, durations, names, inputs and variables. Pure.

Each function gives a value or raises a sentence that says what was written, why it is wrong and
what to write. What Kubernetes would take and a user hardly means is refused, too: `memory: 16` is
16 bytes there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tfadmit_client import fault
from tfadmit_trainer import contract, pattern, workspace
from tfadmit_transfer import fault as transfer_fault
from tfadmit_transfer import inputs, uri

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_OBJECT: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]+")
# As the launcher reads them; nothing stands for its default.
_SAVE_SECONDS: Final = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?)?")
_RESOURCE: Final = re.compile(r"[a-z0-9][-a-z0-9.]*/[A-Za-z0-9][-A-Za-z0-9_.]*")
_CPU: Final = re.compile(r"[0-9]+m|[0-9]+(\.[0-9]{1,3})?")
_MEMORY: Final = re.compile(r"[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)")
_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_SECONDS: Final = (86_400, 3_600, 60, 1)
_SECRET: Final = "secret:"  # noqa: S105 - a prefix
# Names of variables that hold what nobody else may read.
_CONFIDENTIAL: Final = re.compile(
    r"(?i)(.*_)?(PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|SECRET_ACCESS_KEY|PRIVATE_KEY)"
)
# What webhook, launcher and the containers beside it tell each other: a value of a user's own
# breaks that in each pod, after an hour in a queue.
_OURS: Final = frozenset(
    (
        contract.ATTEMPT_ENV,
        contract.CLUSTER_ENV,
        workspace.CODE_MOUNT_ENV,
        workspace.CODE_SHA256_ENV,
        workspace.FETCH_ENV,
        workspace.INPUTS_ENV,
        workspace.OUTPUT_MOUNT_ENV,
        workspace.OUTPUT_URI_ENV,
        workspace.ROOT_ENV,
        workspace.RUN_ENV,
        workspace.SAVES_ENV,
    )
)
NVIDIA: Final = "nvidia.com/gpu"
NVIDIA_TYPE: Final = "nvidia.com/gpu.product"


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable of the program: a value, or a key of a Secret."""

    name: str
    value: str = ""
    secret: str = ""
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Input:
    """Something to read."""

    name: str
    line: str
    """As the annotation has it, `NAME=URI`."""

    claim: str = ""
    """The claim that it lies on, if it is a volume."""


@dataclass(frozen=True, kw_only=True)
class GpuTypes:
    """Which nodes: those whose label has one of these values."""

    label: str
    values: tuple[str, ...]


def count(text: str, *, option: str, least: int) -> int:
    """Read a number of tasks."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if least <= number <= pattern.MAX_TASKS:
        return number
    raise fault.ClientError(
        f"{option} {text}: write a number from {least} to {pattern.MAX_TASKS:,}, as in {option} 2"
    )


def cpu(text: str, *, option: str) -> str:
    """Read a number of processors."""
    if _CPU.fullmatch(text) and re.search("[1-9]", text):
        return text
    raise fault.ClientError(
        f"{option} {text}: write a number of cores or thousandths, as in {option} 4 or 500m"
    )


def memory(text: str, *, option: str) -> str:
    """Read an amount of memory, which needs a unit."""
    if _MEMORY.fullmatch(text) and re.search("[1-9]", text):
        return text
    if text.isascii() and text.isdigit():
        why = f"that is {text} bytes"
    elif text.endswith("m"):
        why = "m is a thousandth of a byte to Kubernetes"
    else:
        why = "there is no such amount"
    number = re.match(r"[0-9]+", text)
    raise fault.ClientError(
        f"{option} {text}: {why}; write a unit, as in {option} {number[0] if number else 8}Gi"
    )


def gpu(text: str, *, option: str) -> tuple[str, int]:
    """Read a number of GPUs, `2` or `amd.com/gpu=2`, as resource and number."""
    resource, named, number = text.rpartition("=")
    resource = resource if named else NVIDIA
    if not _RESOURCE.fullmatch(resource):
        raise fault.ClientError(
            f"{option} {text}: {resource!r} is no resource of nodes; write {option} 1, or "
            f"{option} amd.com/gpu=1"
        )
    if not (number.isascii() and number.isdigit() and len(number) < 6):
        raise fault.ClientError(f"{option} {text}: write a whole number of GPUs, as in {option} 1")
    return resource, int(number)


def duration(text: str, *, option: str) -> int:
    """Read a duration in seconds."""
    found = _DURATION.fullmatch(text)
    parts = zip(found.groups() if found else (), _SECONDS, strict=False)
    seconds = sum(int(part or 0) * unit for part, unit in parts)
    if 0 < seconds < 2**31:
        return seconds
    raise fault.ClientError(
        f"{option} {text}: write a duration with its units, as in {option} 90m or {option} 1d12h"
    )


def job_name(text: str, *, option: str) -> str:
    """Read the name of a job, which becomes part of host names."""
    if _LABEL.fullmatch(text) and len(text) <= 63:
        return text
    near = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:40].rstrip("-")
    raise fault.ClientError(
        f"{option} {text}: use small letters, digits and hyphens, the first one a letter, at most "
        f"63, as in {option} {near or 'mnist'}"
    )


def object_name(text: str, *, option: str) -> str:
    """Read the name of an object that is there already."""
    if _OBJECT.fullmatch(text) and len(text) <= 253:
        return text
    raise fault.ClientError(
        f"{option} {text!r}: no object can have that name; use small letters, digits, '-' and '.'"
    )


def image(text: str, *, option: str) -> str:
    """Read the name of an image."""
    repository = text.partition("@")[0]
    head, colon, tag = repository.rpartition(":")
    if colon and "/" not in tag:
        repository = head
    if re.fullmatch(r"[!-~]+", text) and repository and repository == repository.lower():
        return text
    raise fault.ClientError(
        f"{option} {text!r}: the name of an image has no spaces and small letters, as in "
        f"{option} registry.example.com/team/image:1.0"
    )


def variable(text: str, *, option: str, environ: Mapping[str, str]) -> Variable:
    """Read `K=V`, `K=secret:NAME/KEY`, or `K`, whose value is the caller's own."""
    name, stated, value = text.partition("=")
    if not _VARIABLE.fullmatch(name):
        raise fault.ClientError(
            f"{option} {text}: {name!r} is no name of a variable; write {option} NAME=VALUE"
        )
    if name in _OURS:
        raise fault.ClientError(
            f"{option} {name}: tfadmit itself sets it in each pod; leave it out"
        )
    if value.startswith(_SECRET):
        return _from_secret(name, value, option=option)
    if not stated and name not in environ:
        raise fault.ClientError(
            f"{option} {name}: it is not set here either; write {option} {name}=VALUE"
        )
    if _CONFIDENTIAL.fullmatch(name):
        raise fault.ClientError(
            f"{option} {name}: its value would stand in the TrainJob, where others read it; put it "
            f"into a Secret (kubectl create secret generic NAME --from-literal={name}=…) and "
            f"write {option} {name}=secret:NAME/{name}"
        )
    found = value if stated else environ[name]
    if name == workspace.SAVE_TIMEOUT_ENV and not _SAVE_SECONDS.fullmatch(found):
        raise fault.ClientError(
            f"{option} {name}={found}: it is how many seconds a save may take; write a number, as "
            f"in {option} {name}={workspace.SAVE_TIMEOUT_SECONDS:.0f}"
        )
    return Variable(name=name, value=found)


def _from_secret(name: str, value: str, *, option: str) -> Variable:
    secret, _, key = value.removeprefix(_SECRET).partition("/")
    if not _OBJECT.fullmatch(secret) or not _KEY.fullmatch(key):
        raise fault.ClientError(
            f"{option} {name}={value}: write {option} {name}=secret:NAME/KEY, the name of a Secret "
            "and one of its keys"
        )
    return Variable(name=name, secret=secret, key=key)


def data(text: str, *, option: str) -> Input:
    """Read `NAME=URI`, or a URI alone, whose name is `data`."""
    try:
        found = inputs.parse(text)
    except transfer_fault.RefusedError as error:
        raise fault.ClientError(f"{option}: {error}") from error
    if len(found) != 1:
        raise fault.ClientError(f"{option} {text!r}: write one input, and {option} again for more")
    if found[0].name == workspace.CODE_INPUT:
        raise fault.ClientError(
            f"{option} {text}: {workspace.CODE_INPUT} is where the program's own code lies; "
            "choose another name"
        )
    return Input(name=found[0].name, line=inputs.render(found), claim=claim(str(found[0].uri)))


def output(text: str, *, option: str) -> str:
    """Read the address below which results are saved."""
    try:
        return str(uri.output(text)).rstrip("/")
    except transfer_fault.RefusedError as error:
        raise fault.ClientError(f"{option}: {error}") from error


def claim(address: str) -> str:
    """Give the claim that an address names, or nothing."""
    found = uri.parse(address)
    return found.host if found.scheme == "pvc" else ""


def gpu_types(text: str, *, option: str, label: str) -> GpuTypes:
    """Read `TYPE[,TYPE]` or `LABEL=TYPE[,TYPE]`."""
    stated, named, rest = text.rpartition("=")
    values = tuple(word.strip() for word in rest.split(","))
    if not all(_KEY.fullmatch(word) for word in values) or (named and not stated):
        raise fault.ClientError(
            f"{option} {text}: write the value of the nodes' label {label}, as `kubectl get nodes "
            f"-L {label}` shows it, or LABEL=VALUE"
        )
    return GpuTypes(label=stated or label, values=values)
