"""What a policy rule is: an identifier, a level, and one pure function over a raw object.

A rule is one file `tfaNNN_name.py` beside this one with a constant `RULE`; nothing else names it.
Its module docstring is its background. Here is only the shape; `policy` collects and judges.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tfadmit_webhook import raw
from tfadmit_webhook.settings import Level

Subject = Literal["runtime", "trainjob"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One place where an object breaks a rule."""

    path: raw.Path
    what: str
    """What is wrong there, as the end of a sentence that begins with the path."""

    fix: str
    """The line, or lines, that mend it."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule, and its text for people."""

    id: str
    name: str
    subject: Subject
    level: Level
    why: str
    """Why it matters, in one clause."""

    check: Callable[[raw.JsonObject], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A finding together with its rule and the level that the settings give it."""

    rule: Rule
    finding: Finding
    level: Level

    @property
    def sentence(self) -> str:
        """What, where, why, and the line that fixes it."""
        where = raw.dotted(self.finding.path)
        return (
            f"{self.rule.id} {where} {self.finding.what}: {self.rule.why}; write {self.finding.fix}"
        )
