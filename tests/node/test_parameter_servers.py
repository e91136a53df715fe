"""Chief, workers, parameter servers and evaluator in pods: they train, and none is left over."""

from __future__ import annotations

import pytest

from harness import install, tools
from harness.cluster import Cluster
from node import support, trainings
from node.trainings import Training

pytestmark = pytest.mark.timeout(900)

_VARIANT = tools.ROOT / "deploy" / "variants" / "evaluator"
_PROGRAM = (tools.ROOT / "tests" / "training" / "scripts" / "roles.py").read_text()
_ENV = {
    "TFADMIT_OUTPUT_DIR": "/storage/out",
    "EPOCHS": "6",
    # The evaluator looks once a second.
    "PAUSE": "2",
}


@pytest.fixture
def runtime(cluster: Cluster, training: Training) -> support.Json:
    """The shipped runtime with an evaluator."""
    (found,) = install.render(cluster, _VARIANT)
    return training.on_storage(found)


def role(pod: support.Json) -> str:
    return str(pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"])


def said(cluster: Cluster, namespace: str, name: str) -> str:
    """What the pods of a role printed so far."""
    pods = [pod for pod in cluster.list("Pod", namespace) if role(pod) == name]
    # A container that waits for its image has no log yet.
    begun = [pod for pod in pods if pod["status"].get("phase") not in (None, "Pending")]
    return "\n".join(support.logs(cluster, namespace, pod["metadata"]["name"]) for pod in begun)


def begins(cluster: Cluster, namespace: str, training: Training, runtime: support.Json) -> None:
    """Start, until the evaluator has read what the chief saved."""
    training.start("python", "-u", "-c", _PROGRAM, runtime=runtime, env=_ENV)
    cluster.wait(
        lambda: said(cluster, namespace, "evaluator"),
        until=lambda log: "EVALUATED ckpt-" in log,
        timeout=240,
        pause=0.5,
        what="the evaluator reads a checkpoint",
    )
    roles = sorted(role(pod) for pod in cluster.list("Pod", namespace))
    assert roles == ["chief", "evaluator", "node", "node", "ps"]


def running(cluster: Cluster, namespace: str) -> list[str]:
    pods = cluster.list("Pod", namespace)
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]


def test_when_the_chief_has_ended_nothing_is_left_running(
    cluster: Cluster, namespace: str, training: Training, runtime: support.Json
):
    begins(cluster, namespace, training, runtime)
    training.completes()
    cluster.wait(
        lambda: running(cluster, namespace),
        until=lambda names: names == [],
        timeout=60,
        what="no pod runs",
    )
    assert training.restarts() == (0, 0)
    log = said(cluster, namespace, "chief")
    assert "CHIEF DONE" in log
    losses = [float(line.rpartition(" ")[2]) for line in log.splitlines() if "EPOCH" in line]
    assert len(losses) == 6
    assert losses[-1] < losses[0] / 2


def test_an_evicted_parameter_server_starts_all_again_and_they_resume(
    cluster: Cluster, namespace: str, training: Training, runtime: support.Json
):
    begins(cluster, namespace, training, runtime)
    (server,) = [pod for pod in cluster.list("Pod", namespace) if role(pod) == "ps"]
    trainings.evict(cluster, server)
    training.completes()
    assert training.restarts() == (1, 0)
    assert "restored /storage/out/" in said(cluster, namespace, "chief")
