"""What can be read from an offset on: the seam between downloads and where they come from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The bytes of one object, from an offset to its end."""

    offset: int
    """Where it begins: 0 when the object is no longer the one that was asked for."""

    size: int | None
    """How long the whole object is, if that is known."""

    version: str
    """What tells this content from another, empty if nothing does."""

    chunks: Iterator[bytes]
    """Raises a TransferError when the connection breaks."""


class Source(Protocol):
    """One object."""

    @property
    def name(self) -> str:
        """Its address, for sentences."""

    def open(self, *, offset: int, version: str) -> Stream:
        """Read from the offset on if it is still this version, else from the beginning.

        Raises:
            TransferError: it cannot be read.
        """
