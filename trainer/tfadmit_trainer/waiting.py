"""Asking for many peers until all have answered or time is up, with lines that say who is missing.

The loop and nothing else: how often to ask stands in `schedule`, how to ask in `resolve`, who asks
and what it means that somebody is missing in `barrier`.
"""

import functools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tfadmit_trainer import peers, resolve, schedule, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.diagnosis import Missing, Why
from tfadmit_trainer.peers import Peer
from tfadmit_trainer.pool import Pool

# A healthy peer in the same cluster answers in milliseconds; a lost SYN is repeated after 1 s.
_CONNECT_SECONDS: Final = 3.0
# Progress: soon, so that nobody wonders; then at doubling intervals, and at least once a minute.
_FIRST_LINE_SECONDS: Final = 5.0
_LINE_SECONDS: Final = 60.0
# How long the loop may block while answers are out: the delay of a progress line or a signal.
_TICK_SECONDS: Final = 0.25

_Place = tuple[str, int]
"""A host and the port to connect to; port 0 for the name only."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What the waiting is done with."""

    lookup: resolve.Lookup = resolve.lookup
    connects: Callable[..., bool] = resolve.connects
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    randomness: random.Random = field(default_factory=random.Random)
    say: voice.Say = voice.say
    warn: voice.Say = voice.warn


class Waiting:
    """One waiting. Peers with the same place to ask share one question."""

    def __init__(
        self,
        context: TaskContext,
        everybody: Sequence[Peer],
        *,
        connect: bool,
        port: int | None,
        tools: Tools,
    ) -> None:
        self._tools = tools
        self._total = len(everybody)
        self._groups: dict[_Place, list[Peer]] = {}
        for peer in everybody:
            own = peers.is_own(peer, context=context)
            target = (port or peer.port) if connect and not own else 0
            self._groups.setdefault((peer.host, target), []).append(peer)
        self._whys: dict[_Place, Why] = dict.fromkeys(self._groups, "unasked")
        self._begin = tools.clock()
        self._next_line = self._begin + _FIRST_LINE_SECONDS
        self._line_gap = _FIRST_LINE_SECONDS
        self._schedule = schedule.Schedule(
            list(self._groups),
            per_second=schedule.rate(self._total),
            now=self._begin,
            source=tools.randomness,
        )

    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._tools.clock() - self._begin

    def run(self, *, timeout: float, once: bool) -> list[Missing]:
        """Ask until all are there or time is up (or all were asked, `once`); give who is not."""
        ask = functools.partial(_ask, tools=self._tools)
        pool: Pool[_Place, Why | None] = Pool(ask)
        try:
            while self._whys and self.seconds() < timeout:
                if not self._step(pool, left=timeout - self.seconds(), once=once):
                    break
        finally:
            pool.close()
        return [
            Missing(peer=peer, why=why)
            for place, why in self._whys.items()
            for peer in self._groups[place]
        ]

    def _step(self, pool: Pool[_Place, Why | None], *, left: float, once: bool) -> bool:
        now = self._tools.clock()
        for place in self._schedule.take(now=now):
            if self._whys[place] == "unasked":
                self._whys[place] = "unanswered"  # until the answer comes
            pool.submit(place)
        due = self._schedule.next()
        pause = min(left, _TICK_SECONDS if due is None else max(due - now, 0.001))
        if pool.in_flight:
            answers = pool.collect(timeout=min(pause, _TICK_SECONDS))
            for place, why in answers:
                self._note(place, why, once=once)
        elif due is None:
            return False
        else:
            self._tools.sleep(min(pause, _TICK_SECONDS))
        self._progress(once=once)
        return True

    def _note(self, place: _Place, why: Why | None, *, once: bool) -> None:
        if why is None:
            del self._whys[place]
            return
        self._whys[place] = why
        if not once:
            self._schedule.again(place, now=self._tools.clock())

    def _progress(self, *, once: bool) -> None:
        now = self._tools.clock()
        if once or now < self._next_line or not self._whys:
            return
        self._tools.say(f"{self._line()}, {now - self._begin:.0f} s")
        self._line_gap = min(_LINE_SECONDS, self._line_gap * 2)
        self._next_line += self._line_gap

    def _line(self) -> str:
        absent: list[Peer] = []
        unasked = 0
        for place, why in self._whys.items():
            if why == "unasked":
                unasked += len(self._groups[place])
            else:
                absent += self._groups[place]
        words = []
        if absent:
            named = peers.describe(absent)
            words.append(f"waiting for {named} ({len(absent)} of {self._total})")
        if unasked:
            words.append(f"{unasked} names not asked for yet, to spare the name servers")
        return "; ".join(words)


def _ask(place: _Place, *, tools: Tools) -> Why | None:
    host, port = place
    answer = tools.lookup(host)
    if answer.fault or not answer.addresses:
        return answer.fault or "unknown"
    if port == 0:
        return None
    address = answer.addresses[0]
    return None if tools.connects(address, port=port, timeout=_CONNECT_SECONDS) else "refused"
