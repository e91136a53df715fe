"""A reason: a code that programs may compare, and a sentence for people."""

from dataclasses import dataclass
from typing import Literal, get_args

Code = Literal[
    "",
    "config",
    "crash-loop",
    "deadline",
    "deleting",
    "disrupted",
    "exit",
    "failed",
    "gated",
    "image",
    "initializing",
    "not-created",
    "oom",
    "queue",
    "quota",
    "refused",
    "restarting",
    "runtime-missing",
    "scheduling",
    "starting",
    "stopped",
    "unknown",
    "unschedulable",
    "volume",
    "webhook-down",
]
CODES: tuple[Code, ...] = get_args(Code)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a job is in its state."""

    code: Code
    text: str


NONE = Reason(code="", text="")
