"""What tasks say to each other when they meet before TensorFlow starts.

Messages are lines of JSON. What others send is data: it is bounded, and nothing of it is executed.
Pure: no sockets here.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Final

from tfadmit_trainer import contract, encoding, exits, fault, peers
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Unknown

MAX_LINE: Final = 4096

Message = Mapping[str, Unknown]
Who = tuple[str, int]


class DisagreementError(fault.StartError):
    """Tasks do not see the same training; the message says which ones."""

    exit_code = exits.PEER_LOST


class MeetingError(fault.StartError):
    """Not all tasks came in time; the message says who and what to look at."""

    exit_code = exits.PEERS_MISSING


def card(context: TaskContext) -> dict[str, Unknown]:
    """Say who this task is and what it knows; all but role and index must be the same for all."""
    seen = encoding.encode(context.cluster.seen_by("worker"))
    return {
        "tfadmit": contract.VERSION,
        "role": context.role,
        "index": context.index,
        "cluster": zlib.crc32(seen.encode()),
        "attempt": context.attempt,
    }


def parse(line: bytes) -> Message | None:
    """Read a message; None when it is none of ours, such as TensorFlow's own."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(message, dict) and message.get("tfadmit") == contract.VERSION
    return message if ours else None


def who(message: Message | None) -> Who | None:
    """Say which task a message is from; None when it does not say."""
    role, index = (message.get("role"), message.get("index")) if message else (None, None)
    return (role, index) if isinstance(role, str) and isinstance(index, int) else None


def written(message: Message) -> bytes:
    """Write a message."""
    return json.dumps({"tfadmit": contract.VERSION, **message}).encode() + b"\n"


def last_words(context: TaskContext, absent: list[peers.Peer], *, waited: float) -> str:
    """Say why a task gives up, what is likely wrong and where to look."""
    named = f"{peers.describe(absent)} ({len(absent)} of {context.members})"
    return (
        f"{context.role} {context.index} gave up after {waited:.0f} s in the start of the "
        f"training: {named} did not come, though all names resolve: a pod still pulls its image, "
        "its program ended or loads data before strategy.create(), it uses another port, or a "
        f"NetworkPolicy is in the way\nlook: kubectl get pods -o wide, and the log of {absent[0]}"
    )
