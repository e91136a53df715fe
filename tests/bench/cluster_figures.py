"""What one burst of pods took with one webhook, and all rounds of it as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import apiserver, burst, report, rounds


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One burst with one webhook."""

    pods: int
    took: burst.Took
    counted: apiserver.Counted
    fetched: float
    """JobSets that the product asked the API server for."""

    own_cpu: float
    """Seconds of processor time of the webhook, from the first request until all pods run."""

    all_cpu: float
    """The same of everything: the control plane, its controllers, the webhooks, this program."""

    def __str__(self) -> str:
        calls = self.counted.calls
        return (
            f"created in {self.took.created:.1f} s, all run after {self.took.running:.1f} s,"
            f" {calls.count:.0f} calls, {calls.refused:.0f} refused"
        )


Samples = Mapping[str, Sequence[Sample]]
_Read = Callable[[Sample], float]

_SPEED: Mapping[str, _Read] = {
    "pods/s created": lambda one: one.pods / one.took.created,
    "all run, s": lambda one: one.took.running,
    "create p50 ms": lambda one: one.counted.creations.percentile(0.5),
    "create p99 ms": lambda one: one.counted.creations.percentile(0.99),
}
# Ratios within a round, to the one without a webhook.
_OF_NONE = ("pods/s created", "all run, s")
_WEBHOOK: Mapping[str, _Read] = {
    "calls": lambda one: one.counted.calls.count,
    "refused": lambda one: one.counted.calls.refused,
    "call p50 ms": lambda one: one.counted.calls.percentile(0.5),
    "call p99 ms": lambda one: one.counted.calls.percentile(0.99),
    "call mean ms": lambda one: one.counted.calls.mean,
    "% of creates": lambda one: (
        100 * one.counted.calls.seconds / max(one.counted.creations.seconds, 1e-9)
    ),
    "JobSets fetched": lambda one: one.fetched,
}
_PROCESSOR: Mapping[str, _Read] = {
    "its CPU s": lambda one: one.own_cpu,
    "all CPU s": lambda one: one.all_cpu,
    "% of CPU": lambda one: 100 * one.own_cpu / one.all_cpu,
}


def spreads(samples: Samples, *, base: str) -> dict[str, dict[str, rounds.Spread]]:
    """Every figure of every webhook; `base` is the one that ratios are to."""
    return {
        webhook: {
            **{
                name: rounds.spread(map(read, own))
                for name, read in {**_SPEED, **_WEBHOOK, **_PROCESSOR}.items()
            },
            **{
                _ratio(name): rounds.spread(
                    _SPEED[name](one) / _SPEED[name](other)
                    for one, other in zip(own, samples[base], strict=True)
                )
                for name in _OF_NONE
            },
        }
        for webhook, own in samples.items()
    }


def tables(found: Mapping[str, Mapping[str, rounds.Spread]], *, base: str) -> str:
    """For people: how fast the pods came, what the webhook did, what all of it cost."""
    speed = [column for name in _SPEED for column in _with_ratio(name)]
    called = {webhook: figures for webhook, figures in found.items() if webhook != base}
    return "\n\n".join(
        (_table(speed, found), _table(_WEBHOOK, called), _table(_PROCESSOR, found)),
    )


def plain(found: Mapping[str, Mapping[str, rounds.Spread]]) -> list[dict[str, Any]]:
    """For machines."""
    return [{"webhook": webhook, **report.plain(figures)} for webhook, figures in found.items()]


def _with_ratio(name: str) -> Sequence[str]:
    return (name, _ratio(name)) if name in _OF_NONE else (name,)


def _ratio(name: str) -> str:
    return f"{name}, of none"


def _table(
    columns: Sequence[str] | Mapping[str, _Read],
    found: Mapping[str, Mapping[str, rounds.Spread]],
) -> str:
    rows = [
        (webhook, *(report.with_spread(figures[name]) for name in columns))
        for webhook, figures in found.items()
    ]
    return report.table(("webhook", *columns), rows)
