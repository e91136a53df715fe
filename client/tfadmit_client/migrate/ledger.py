"""What became of each field of a TFJob: the entries of the report, and the fields without one.

Pure. An entry for a field stands for all that is below it, unless that has an entry of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tfadmit_webhook import raw

Verdict = Literal["exactly", "nearly", "not"]
Object = Literal["TrainingRuntime", "TrainJob"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """A field of the output."""

    object: Object
    path: raw.Path

    @property
    def label(self) -> str:
        """Object and field for people."""
        return f"{self.object} {raw.dotted(self.path)}"


def runtime(*path: str | int) -> Target:
    """Name a field of the runtime."""
    return Target(object="TrainingRuntime", path=path)


def trainjob(*path: str | int) -> Target:
    """Name a field of the TrainJob."""
    return Target(object="TrainJob", path=path)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What became of a field."""

    verdict: Verdict
    path: raw.Path
    """The field of the TFJob; empty for what only the output has."""

    what: str
    """What happened to it, and why."""

    advice: str = ""
    """What to do, if anything."""

    target: Target | None = None
    """Where it went, or what of the output it is about."""

    refuses: bool = False
    """Whether the webhook would refuse the output for it."""

    @property
    def where(self) -> str:
        """The field for people."""
        if self.path or self.target is None:
            return raw.dotted(self.path)
        return self.target.label

    @property
    def sentence(self) -> str:
        """What, why, and what to do."""
        return f"{self.what}; to do: {self.advice}" if self.advice else self.what


@dataclass(kw_only=True)
class Ledger:
    """Collects entries while a TFJob is translated."""

    entries: list[Entry] = field(default_factory=list)

    def exactly(self, path: raw.Path, what: str, *, to: Target | None = None) -> None:
        """Tell of a field that means the same in the output, or meant nothing before."""
        self.entries.append(Entry(verdict="exactly", path=path, what=what, target=to))

    def nearly(
        self, path: raw.Path, what: str, *, to: Target | None = None, advice: str = ""
    ) -> None:
        """Tell of a field whose meaning changes a little."""
        entry = Entry(verdict="nearly", path=path, what=what, target=to, advice=advice)
        self.entries.append(entry)

    def missing(self, path: raw.Path, what: str, *, to: Target | None = None, advice: str) -> None:
        """Tell of a field that the output cannot express."""
        entry = Entry(verdict="not", path=path, what=what, target=to, advice=advice)
        self.entries.append(entry)


def untold(content: object, entries: Iterable[Entry]) -> Iterator[raw.Path]:
    """Give the leaves of an object that no entry stands for."""
    told = {entry.path for entry in entries if entry.path}
    for path in leaves(content):
        if not any(path[:length] in told for length in range(1, len(path) + 1)):
            yield path


def leaves(content: object, *, at: raw.Path = ()) -> Iterator[raw.Path]:
    """Give the paths of all values that are no containers; null is absent, `{}` is a value."""
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from leaves(value, at=(*at, key))
    elif isinstance(content, list) and content:
        for index, value in enumerate(content):
            yield from leaves(value, at=(*at, index))
    elif content is not None:
        yield at
