"""Metrics of several processes as one page."""

import math

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tfadmit_webhook import merged


class Joined:
    def __init__(self, *registries, gauges=None):
        self.registries, self.gauges = registries, gauges or {}

    def collect(self):
        pages = [list(registry.collect()) for registry in self.registries]
        return merged.families(pages, gauges=self.gauges)


def lines(joined):
    registry = CollectorRegistry()
    registry.register(joined)
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def pair(kind, *arguments, **options):
    registries = CollectorRegistry(), CollectorRegistry()
    return registries, [kind(*arguments, registry=item, **options) for item in registries]


def test_counters_are_sums_also_of_labels_that_only_one_has():
    registries, (first, second) = pair(Counter, "c", "text", ["a"])
    first.labels("x").inc(2)
    second.labels("x").inc(3)
    second.labels("y").inc()
    found = [line for line in lines(Joined(*registries)) if "_created" not in line]
    assert found == ['c_total{a="x"} 5.0', 'c_total{a="y"} 1.0']


def test_a_histogram_keeps_the_order_of_its_buckets():
    registries, (first, second) = pair(Histogram, "h", "text", buckets=(1, 10))
    first.observe(0.5)
    second.observe(5)
    found = [line for line in lines(Joined(*registries)) if "_created" not in line]
    assert found == [
        'h_bucket{le="1.0"} 1.0',
        'h_bucket{le="10.0"} 2.0',
        'h_bucket{le="+Inf"} 2.0',
        "h_count 2.0",
        "h_sum 5.5",
    ]


def test_a_gauge_is_joined_as_its_name_says():
    registries, (first, second) = pair(Gauge, "g", "text")
    first.set(3)
    second.set(4)
    assert lines(Joined(*registries)) == ["g 7.0"]
    assert lines(Joined(*registries, gauges={"g": min})) == ["g 3.0"]


def test_the_page_of_one_is_its_own():
    registries, (first, _) = pair(Gauge, "g", "text")
    first.set(3)
    assert lines(Joined(registries[0])) == ["g 3.0"]


def test_what_is_no_number_counts_only_where_there_is_no_other():
    assert merged.largest([math.nan, 2.0, 1.0]) == 2.0
    assert math.isnan(merged.largest([math.nan]))
