"""The report: what was translated exactly, nearly and not, as text and as data. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate.translate import Translation

# In the order of what there is to do.
_ORDER: tuple[book.Verdict, ...] = ("not", "nearly", "exactly")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One TFJob, what was made of it, and all that is to be told."""

    label: str
    """Kind, namespace and name."""

    source: str
    """File and line, or the cluster."""

    made: Translation
    entries: tuple[book.Entry, ...]

    def count(self, verdict: book.Verdict) -> int:
        """How many entries came out like this."""
        return sum(entry.verdict == verdict for entry in self.entries)

    @property
    def counts(self) -> str:
        """The numbers for people."""
        return ", ".join(f"{self.count(verdict)} {verdict}" for verdict in get_args(book.Verdict))


def text(results: Sequence[Result], *, skipped: int) -> str:
    """Write a section for each TFJob, what is to be done first."""
    lines: list[str] = []
    for result in results:
        lines.append(f"{result.label} ({result.source}): {result.counts}")
        for verdict in _ORDER:
            for entry in result.entries:
                if entry.verdict == verdict:
                    lines += _lines(entry)
        lines.append("")
    plural = "" if skipped == 1 else "s"
    others = f"; {skipped} object{plural} of other kinds passed by" if skipped else ""
    lines.append(f"{len(results)} TFJob{'' if len(results) == 1 else 's'} translated{others}")
    return "\n".join(lines) + "\n"


def _lines(entry: book.Entry) -> list[str]:
    place = f" → {entry.target.label}" if entry.path and entry.target else ""
    lines = [f"  {entry.verdict:7}  {entry.where}{place}", f"           {entry.what}"]
    if entry.advice:
        lines.append(f"           to do: {entry.advice}")
    return lines


def fields(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Give the report as data."""
    return [
        {
            "tfjob": result.label,
            "source": result.source,
            "counts": {verdict: result.count(verdict) for verdict in get_args(book.Verdict)},
            "entries": [_fields(entry) for entry in result.entries],
        }
        for result in results
    ]


def _fields(entry: book.Entry) -> dict[str, Any]:
    made = {"verdict": entry.verdict, "field": entry.where, "what": entry.what}
    if entry.path and entry.target:
        made["target"] = entry.target.label
    if entry.advice:
        made["advice"] = entry.advice
    return made
