"""The world outside as tests want it: a clock that jumps, names that answer as told."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tfadmit_trainer import context, contract
from tfadmit_trainer.host import Host
from tfadmit_trainer.resolve import Answer
from tfadmit_trainer.waiting import Tools

FOUND = Answer(addresses=("10.0.0.1",))
UNKNOWN = Answer(fault="unknown")
UNANSWERED = Answer(fault="unanswered")


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


@dataclass
class Outside:
    """What a host was given, and what it said."""

    clock: Clock = field(default_factory=Clock)
    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "\n".join(self.said)

    def lookup(self, answer: Callable[[str], Answer]) -> Callable[[str], Answer]:
        def look(name: str) -> Answer:
            self.asked.append(name)
            return answer(name)

        return look

    def host(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        name: str = "box",
        files: Mapping[str, str] | None = None,
        names: Iterable[str] | Callable[[str], Answer] = (),
        modules: Mapping[str, object] | None = None,
    ) -> Host:
        known = names if callable(names) else known_names(names)
        return Host(
            environ=dict(environ or {}),
            name=name,
            modules=modules or {},
            read=(files or {}).get,
            lookup=self.lookup(known),
            clock=self.clock,
            sleep=self.clock.sleep,
            say=self.said.append,
            warn=self.warned.append,
        )

    def tools(
        self,
        names: Iterable[str] | Callable[[str], Answer] = (),
        *,
        connects: Callable[..., bool] = lambda *_, **__: True,
    ) -> Tools:
        known = names if callable(names) else known_names(names)
        return Tools(
            lookup=self.lookup(known),
            connects=connects,
            clock=self.clock,
            sleep=self.clock.sleep,
            randomness=random.Random(7),
            say=self.said.append,
            warn=self.warned.append,
        )


def known_names(names: Iterable[str]) -> Callable[[str], Answer]:
    known = set(names)
    return lambda name: FOUND if name in known else UNKNOWN


def task_context(role="worker", index=0, *, source="tfadmit", environ=None, **patterns):
    """The context of one task; `worker=("w-{0..2}.job:1",)` and so on for the cluster."""
    cluster = contract.Cluster(**patterns)
    task = contract.Task(cluster=cluster, role=role, index=index)
    return context.of(task, source=source, environ=environ or {})
