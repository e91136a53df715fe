"""What a policy rule is: an identifier, a level, and one pure function over a case.

A rule is one file `tfaNNN_name.py` beside this one with a constant `RULE`; nothing else names it.
Its module docstring is its background. Here is only the shape; `policy` collects and judges.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.settings import Level, Settings

Subject = Literal["runtime", "trainjob"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One place where an object breaks a rule."""

    path: raw.Path
    what: str
    """What is wrong there, as the end of a sentence that begins with the path."""

    fix: str
    """The line, or lines, that mend it."""

    why: str = ""
    """Why it matters here, where that is not the reason of the rule."""

    only_warn: bool = False
    """Whether this finding never refuses, whatever the level of its rule."""


def one_of(names: Iterable[str]) -> str:
    """Write names as a fix: the one that there is, or those to choose from."""
    known = list(names)
    return f"one of {', '.join(known)}" if len(known) > 1 else f"`{''.join(known)}`"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a rule looks at."""

    subject: Subject
    content: raw.JsonObject
    settings: Settings
    jobs: tuple[runtime.Job, ...]
    """The replicated jobs of the runtime; for a TrainJob with as many pods as it gets."""

    on: raw.JsonObject | None = None
    """The runtime that a TrainJob refers to; None when it does not exist."""

    @functools.cached_property
    def tasks(self) -> tuple[runtime.Job, ...]:
        """The replicated jobs whose pods are TensorFlow tasks."""
        return tuple(job for job in self.jobs if job.is_task)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule, and its text for people."""

    id: str
    name: str
    subjects: frozenset[Subject]
    """The kinds of objects that it judges."""

    level: Level
    why: str
    """Why it matters, in one clause."""

    check: Callable[[Case], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A finding together with its rule and the level that the settings give it."""

    rule: Rule
    finding: Finding
    level: Level
    exempted: str = ""
    """Why the settings leave the object alone; the level is then `off`."""

    @property
    def sentence(self) -> str:
        """Where, what, why, and the line that fixes it."""
        where = raw.dotted(self.finding.path)
        why = self.finding.why or self.rule.why
        return f"{self.rule.id} {where} {self.finding.what}: {why}; fix: {self.finding.fix}"

    def within(self, length: int) -> str:
        """Give the sentence, without what matters least where it would be longer.

        The rule, the path and the fix come last; if they alone are too long, so is the answer.
        """
        where = raw.dotted(self.finding.path)
        shorter = (
            self.sentence,
            f"{self.rule.id} {where} {self.finding.what}; fix: {self.finding.fix}",
            f"{self.rule.id} {where}; fix: {self.finding.fix}",
        )
        return next((text for text in shorter if len(text) <= length), shorter[-1])
