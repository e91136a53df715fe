"""TensorFlow trains in pods, by the shipped webhook, runtime and example."""

from __future__ import annotations

import re

import pytest

from harness.cluster import Cluster
from node import support

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _installed(tfadmit: None) -> None:
    """Every pod here gets its cluster from the webhook."""


@pytest.mark.parametrize("workers", [2, 3])
def test_the_shipped_example_trains_on_several_workers(
    cluster: Cluster, namespace: str, training_image: str, workers: int
):
    trainjob = support.example("trainjob-cifar10.yaml", namespace=namespace)
    trainjob["spec"]["trainer"] |= {"numNodes": workers, "image": training_image}
    cluster.apply(trainjob)
    support.complete(cluster, namespace, "tf-cifar10")

    said = [support.worker_logs(cluster, namespace, "tf-cifar10", i) for i in range(workers)]
    losses = [float(loss) for loss in re.findall(r"epoch \d loss ([0-9.]+)", said[0])]
    assert len(losses) == 3
    assert losses == sorted(losses, reverse=True)
    assert all(f"replicas in sync: {workers}" in text for text in said)
    weights = {re.findall(r"weights: (\S+)", text)[0] for text in said}
    assert len(weights) == 1, weights
    shown = cluster.kubectl("get", "trainjob", "tf-cifar10", "-n", namespace)
    assert "Complete" in shown.stdout
