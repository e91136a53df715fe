"""The tasks that train together, and how they are named in a line of log.

Pure: a context in, values and text out. The evaluator is nobody's peer.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.contract import Role

_MEMBERS: Final[tuple[Role, ...]] = ("chief", "worker", "ps")
# Of many missing tasks the first ranges are named: a line of a log is no list of 10,000 names.
_SHOWN: Final = 10


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One task and its address."""

    role: Role
    index: int
    address: str

    @property
    def host(self) -> str:
        """The name to resolve."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of its TensorFlow server."""
        return int(self.address.rpartition(":")[2])

    def __str__(self) -> str:
        return f"{self.role} {self.index}"


def members(context: TaskContext) -> list[Peer]:
    """Give every task that trains together, this one included."""
    return [
        Peer(role=role, index=index, address=address)
        for role in _MEMBERS
        for index, address in enumerate(context.addresses(role))
    ]


def is_own(peer: Peer, *, context: TaskContext) -> bool:
    """Whether a peer is this task itself."""
    return (peer.role, peer.index) == (context.role, context.index)


def describe(some: Sequence[Peer]) -> str:
    """Name tasks in short: `chief 0, worker 3, 7-9`; of many the first ones and how many more."""
    words: list[str] = []
    for role, group in itertools.groupby(sorted(some, key=_order), key=lambda peer: peer.role):
        runs = list(_runs(peer.index for peer in group))
        shown = ", ".join(_range(low, high) for low, high in runs[:_SHOWN])
        more = sum(high - low + 1 for low, high in runs[_SHOWN:])
        words.append(f"{role} {shown}" + (f" and {more:,} more" if more else ""))
    return ", ".join(words)


def _order(peer: Peer) -> tuple[int, int]:
    return _MEMBERS.index(peer.role), peer.index


def _runs(indexes: Iterable[int]) -> Iterable[tuple[int, int]]:
    # Consecutive numbers share their distance to their position.
    for _, group in itertools.groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in group]
        yield numbers[0], numbers[-1]


def _range(low: int, high: int) -> str:
    if high <= low + 1:
        return str(low) if high == low else f"{low}, {high}"
    return f"{low}-{high}"
