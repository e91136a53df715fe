"""The metrics of several processes as those of one server. Pure.

Counters and histograms are sums: the processes of a server start and end together, so no sum ever
falls but when all begin anew. What a gauge of several processes means stands with its name in
`metrics`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client.core import Metric

Join = Callable[[Sequence[float]], float]
_Key = tuple[str, tuple[tuple[str, str], ...]]


def families(pages: Iterable[Iterable[Metric]], *, gauges: Mapping[str, Join]) -> list[Metric]:
    """Join the pages of processes to one; `gauges` tells how, by name of the metric."""
    first: dict[str, Metric] = {}
    found: dict[str, dict[_Key, list[float]]] = {}
    for page in pages:
        for family in page:
            first.setdefault(family.name, family)
            values = found.setdefault(family.name, {})
            for sample in family.samples:
                key = sample.name, tuple(sample.labels.items())
                values.setdefault(key, []).append(sample.value)
    return [_family(first[name], found[name], gauges.get(name, sum)) for name in first]


def largest(values: Sequence[float]) -> float:
    """Give the largest value that is a number, if any is."""
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _family(like: Metric, found: Mapping[_Key, Sequence[float]], join: Join) -> Metric:
    family = Metric(like.name, like.documentation, like.type, like.unit)
    for (name, labels), values in found.items():
        family.add_sample(name, dict(labels), join(values))
    return family
