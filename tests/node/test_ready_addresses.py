"""publishNotReadyAddresses for real: the fact behind the rule TFA001."""

from __future__ import annotations

import pytest

from harness.cluster import Cluster
from harness.node import images
from node import support, trainings

_RESOLVE = """
import socket, sys, time
deadline = time.monotonic() + 20
for name in sys.argv[1:]:
    while True:
        try:
            print("found", name, socket.gethostbyname(name)); break
        except OSError:
            if time.monotonic() > deadline:
                print("missing", name); break
            time.sleep(0.5)
"""


def jobset(namespace: str, *, publish: bool) -> support.Json:
    """Two pods that are never Ready and look each other up. tfadmit has no part in it."""
    names = [f"look-node-0-{index}.look" for index in range(2)]
    container = {
        "name": "node",
        "image": images.WEBHOOK.name,
        "command": ["python", "-c", _RESOLVE, *names],
        "readinessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1},
    }
    return support.jobset(namespace, "look", container, publish=publish)


@pytest.mark.parametrize(("publish", "word"), [(True, "found"), (False, "missing")])
def test_names_of_pods_that_are_not_ready(
    cluster: Cluster, namespace: str, publish: bool, word: str
):
    cluster.apply(jobset(namespace, publish=publish))
    cluster.wait(
        lambda: cluster.get("JobSet", "look", namespace),
        until=lambda seen: "Completed" in support.conditions(seen),
        timeout=90,
        what="the JobSet completes",
    )
    for index in range(2):
        lines = support.worker_logs(cluster, namespace, "look", index).splitlines()
        assert [line.split()[:2] for line in lines] == [
            [word, f"look-node-0-{peer}.look"] for peer in range(2)
        ]


def test_the_shipped_runtime_trains_before_any_pod_is_ready(
    training: trainings.Training, cluster: Cluster, namespace: str
):
    runtime = training.runtime()
    (container,) = trainings.pod_of(runtime)["containers"]
    # Only a training that has begun makes its pod Ready.
    checks = {"exec": {"command": ["sh", "-c", "test -e /storage/out/checkpoints/checkpoint"]}}
    container["readinessProbe"] = {**checks, "periodSeconds": 1}
    training.start(runtime=runtime, env={"EPOCHS": "3"})
    training.says(0, "epoch 1/")
    training.completes()
