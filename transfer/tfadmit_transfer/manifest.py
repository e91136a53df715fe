"""What a saved tree consists of, and how one tree becomes the next without ever being half. Pure.

A manifest is the truth about a saved tree: an object that it does not name does not count. A file
whose place is taken by an older content is uploaded beside it first (staged), then the manifest
names the staged object, and only then is it moved into place. So at each moment the manifest names
objects that are whole and belong together, wherever the writer is interrupted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfadmit_transfer import layout


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file of a saved tree."""

    path: str
    size: int
    sha256: str
    key: str
    """The object that has its content."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A saved tree, and the run and attempt that saved it."""

    run: str = ""
    attempt: int = 0
    entries: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(entry.size for entry in self.entries.values())

    def staged(self) -> list[Entry]:
        """The files that are not yet in their place."""
        return [item for item in self.entries.values() if item.key.startswith(layout.STAGING)]

    def settled(self, prefix: str) -> "Manifest":
        """Give the manifest as it is once all files are in their place."""
        entries = {
            path: replace(entry, key=prefix + path)
            if entry.key.startswith(layout.STAGING)
            else entry
            for path, entry in self.entries.items()
        }
        return replace(self, entries=entries)


@dataclass(frozen=True, kw_only=True)
class File:
    """A file on this machine, as it was looked at."""

    path: str
    size: int
    mtime_ns: int


def target(path: str, *, prefix: str, attempt: int, before: Manifest | None, stage: bool) -> str:
    """Choose the key for a changed file: its own, or a staged one if that would overwrite."""
    taken = before is not None and path in before.entries
    if stage or taken:
        return layout.staged(section=prefix, attempt=attempt, path=path)
    return prefix + path


def left_over(keys: Sequence[str], *, sections: Iterable[Manifest | None]) -> list[str]:
    """Give those of some objects that no manifest names."""
    named = {entry.key for found in sections if found for entry in found.entries.values()}
    return [key for key in keys if key not in named]
