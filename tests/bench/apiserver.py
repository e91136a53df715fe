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
_REFUSED = ("apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open")


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The calls of one webhook: how many, in all how long, by bucket, and without a yes."""

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


def calls(cluster: Cluster, *, webhook: str) -> Calls:
    """What the API server has counted until now."""
    text = cluster.api.text("/metrics")
    buckets: dict[float, float] = {}
    total = {"count": 0.0, "sum": 0.0}
    refused = 0.0
    for name, labels, value in _SAMPLE.findall(text):
        if dict(_LABEL.findall(labels)).get("name") != webhook:
            continue
        kind = name.removeprefix(f"{_DURATION}_")
        if kind == "bucket":
            bound = float(dict(_LABEL.findall(labels))["le"])
            buckets[bound] = buckets.get(bound, 0) + float(value)
        elif kind in total:
            total[kind] += float(value)
        elif name.startswith(_REFUSED):
            refused += float(value)
    return Calls(count=total["count"], seconds=total["sum"], refused=refused, buckets=buckets)


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
