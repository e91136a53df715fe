"""What the API server and the product count about the calls of a webhook."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3

from bench.running import Server
from harness.cluster import Cluster

_SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_DURATION = "apiserver_admission_webhook_admission_duration_seconds"
_REQUEST = "apiserver_request_duration_seconds"
_CREATIONS = {"verb": "POST", "resource": "pods", "subresource": "", "dry_run": ""}
_REFUSED = ("apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open")


@dataclass(frozen=True, kw_only=True)
class Calls:
    """Calls of one kind: how many, in all how long, by bucket, and those without a yes."""

    count: float
    seconds: float
    refused: float
    buckets: Mapping[float, float]
    """How many took no longer than so many seconds."""

    def since(self, before: Calls) -> Calls:
        """Those that came after an earlier look."""
        return Calls(
            count=self.count - before.count,
            seconds=self.seconds - before.seconds,
            refused=self.refused - before.refused,
            buckets={
                bound: count - before.buckets.get(bound, 0) for bound, count in self.buckets.items()
            },
        )

    @property
    def mean(self) -> float:
        """Milliseconds of one."""
        return 1000 * self.seconds / self.count if self.count else math.nan

    def percentile(self, share: float) -> float:
        """Milliseconds, as Prometheus' histogram_quantile estimates them."""
        low, below = 0.0, 0.0
        for bound, count in sorted(self.buckets.items()):
            if self.count and count >= share * self.count:
                inside = (share * self.count - below) / (count - below) if count > below else 1.0
                return 1000 * (low + (bound - low) * inside) if bound < math.inf else math.inf
            low, below = bound, count
        return math.nan


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What an API server has counted until now."""

    calls: Calls
    """Of the webhook; each round of the admission chain is one."""

    creations: Calls
    """Requests that create pods, with all that their admission takes, and without dry runs."""

    def since(self, before: Counted) -> Counted:
        """What came after an earlier look."""
        return Counted(
            calls=self.calls.since(before.calls), creations=self.creations.since(before.creations)
        )


def look(cluster: Cluster, *, webhook: str) -> Counted:
    """Ask it now."""
    return counted(cluster.api.text("/metrics"), webhook=webhook)


def counted(page: str, *, webhook: str) -> Counted:
    """Read its metrics."""
    called, created = _Sum(), _Sum()
    for name, text, value in _SAMPLE.findall(page):
        if name.startswith(f"{_DURATION}_") or name.startswith(_REFUSED):
            labels = dict(_LABEL.findall(text))
            if labels.get("name") == webhook:
                called.add(name.removeprefix(f"{_DURATION}_"), labels, float(value))
        elif name.startswith(f"{_REQUEST}_"):
            labels = dict(_LABEL.findall(text))
            if all(labels.get(label) == wanted for label, wanted in _CREATIONS.items()):
                created.add(name.removeprefix(f"{_REQUEST}_"), labels, float(value))
    return Counted(calls=called.calls(), creations=created.calls())


class _Sum:
    """Samples of one histogram, over those of its labels that do not matter here."""

    def __init__(self) -> None:
        self._buckets: dict[float, float] = {}
        self._total = {"count": 0.0, "sum": 0.0}
        self._refused = 0.0

    def add(self, kind: str, labels: Mapping[str, str], value: float) -> None:
        if kind == "bucket":
            bound = float(labels["le"])
            self._buckets[bound] = self._buckets.get(bound, 0) + value
        elif kind in self._total:
            self._total[kind] += value
        elif kind.startswith(_REFUSED):
            self._refused += value

    def calls(self) -> Calls:
        return Calls(
            count=self._total["count"],
            seconds=self._total["sum"],
            refused=self._refused,
            buckets=self._buckets,
        )


def lookups(server: Server) -> float:
    """How often the product has asked the API server for a JobSet."""
    page = urllib3.request("GET", metrics_address(server.program.log)).data.decode()
    found = re.findall(
        r'^tfadmit_lookups_total\{object="jobset".*source="live"\} (\S+)$', page, re.MULTILINE
    )
    return sum(map(float, found))


def metrics_address(log: Path) -> str:
    """Where the product says that its metrics are."""
    found = re.search(r'"(http://[^"]+/metrics)"', log.read_text())
    assert found, f"{log} tells no address"
    return found[1]
