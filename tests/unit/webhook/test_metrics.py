"""The names of the metrics are a promise: the page for platform teams has each, and no other."""

import pathlib
import re

import prometheus_client
import pytest
from prometheus_client.metrics import MetricWrapperBase

from tfadmit_webhook import metrics

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "platform-teams.md"


def documented():
    """Names and labels in the table under `## Metrics and logs`."""
    section = PAGE.read_text().split("## Metrics and logs")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`tfadmit_.*?) \|", section, re.MULTILINE)
    found = re.findall(r"`(tfadmit_\w+)(?:\{([\w,]+)\})?`", " ".join(cells))
    return {name: set(labels.split(",")) - {""} for name, labels in found}


def registered():
    registry = prometheus_client.CollectorRegistry()
    names = {}
    for collector in vars(metrics.Metrics(registry)).values():
        if isinstance(collector, MetricWrapperBase):
            suffix = "_total" if isinstance(collector, prometheus_client.Counter) else ""
            names[collector._name + suffix] = set(collector._labelnames)
    assert len(names) == len({id(item) for item in registry._names_to_collectors.values()}), (
        "each metric is an attribute"
    )
    return names


def test_the_page_and_the_server_have_the_same_names_and_labels():
    assert documented() == registered()


def test_no_label_holds_anything_of_a_pod_or_a_user():
    labels = set().union(*registered().values())
    assert labels <= {
        *("hook", "operation", "decision", "reason", "dry_run", "rule", "level", "cause", "status"),
        *("object", "source", "outcome", "certificate", "configuration", "version", "python"),
    }


@pytest.mark.parametrize("name", sorted(registered()))
def test_names_follow_the_conventions_of_prometheus(name):
    assert re.fullmatch(r"tfadmit_[a-z_]+", name)
    assert not name.endswith(("_ms", "_count", "_sum", "_bucket"))
