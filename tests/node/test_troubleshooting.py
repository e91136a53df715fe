"""The troubles that a TensorFlow runtime without tfadmit is known for: impossible, or explained.

A restarted worker ("different incarnation") and a worker that nobody finds are in `test_faults`.
"""

from __future__ import annotations

import json

import pytest

from harness import tools
from harness.cluster import Cluster
from node import support, trainings
from node.trainings import Training

pytestmark = pytest.mark.timeout(600)

_SCRIPTS = tools.ROOT / "tests" / "training" / "scripts"
_PRINT = "import os; print(os.environ['TF_CONFIG'])"


def script(name: str) -> tuple[str, ...]:
    """A script of the training tests as the program of a TrainJob."""
    return ("python", "-u", "-c", (_SCRIPTS / name).read_text())


def once(runtime: support.Json) -> support.Json:
    """The runtime without second tries: what goes wrong here goes wrong again."""
    runtime["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = 0
    return runtime


def jobset(namespace: str, image: str, *, replicas: int, completions: int) -> support.Json:
    """Two workers without webhook and Trainer, that count themselves by DNS."""
    container = {
        "name": "node",
        "image": image,
        "command": ["tfadmit-run", "--", "python", "-c", _PRINT],
    }
    return support.jobset(namespace, "count", container, replicas=replicas, completions=completions)


@pytest.mark.parametrize(
    ("replicas", "completions", "hosts"),
    [(1, 2, ["count-node-0-0", "count-node-0-1"]), (2, 1, ["count-node-0-0", "count-node-1-0"])],
    ids=["one job", "a job for each node"],
)
def test_workers_that_count_themselves_find_each_other_in_both_patterns_of_names(
    cluster: Cluster, namespace: str, training_image: str, replicas, completions, hosts
):
    made = jobset(namespace, training_image, replicas=replicas, completions=completions)
    cluster.apply(made)
    cluster.wait(
        lambda: cluster.get("JobSet", "count", namespace),
        until=lambda seen: support.conditions(seen).keys() & {"Completed", "Failed"},
        timeout=120,
        what="the JobSet ends",
    )
    pods = cluster.list("Pod", namespace)
    logs = [support.logs(cluster, namespace, pod["metadata"]["name"]) for pod in pods]
    assert all("[Discovery] Discovered 2 workers via DNS" in log for log in logs), logs
    configs = [json.loads(log.splitlines()[-1]) for log in logs]
    assert sorted(config["task"]["index"] for config in configs) == [0, 1]
    suffix = f"count.{namespace}.svc.cluster.local:12345"
    assert all(
        config["cluster"] == {"worker": [f"{host}.{suffix}" for host in hosts]}
        for config in configs
    )


def test_an_evaluation_by_the_chief_alone_ends_soon_and_is_explained(training: Training):
    """Plain TensorFlow ends the others by a heartbeat timeout, minutes later and without a word."""
    training.start(
        *script("fit.py"),
        runtime=once(training.runtime()),
        env={"MAKE": "evaluate on the chief", "TFADMIT_STEP_TIMEOUT": "10"},
    )
    training.fails()
    said = training.reasons().values()
    assert any("in model.evaluate(), which all workers must call" in reason for reason in said), (
        said
    )


def test_a_cluster_that_is_set_after_tensorflow_started_is_refused(training: Training):
    training.start(*script("steps.py"), env={"BEFORE": "1"})
    training.fails()
    assert training.restarts() == (0, 0)
    said = training.reasons().values()
    assert any(
        "TensorFlow was used before the strategy was created" in reason for reason in said
    ), said


def test_missing_images_are_named_and_nothing_is_downloaded(training: Training):
    training.start(*trainings.EXAMPLE, env={"CIFAR10_DIR": "/storage/none"})
    training.fails()
    assert training.restarts() == (0, 0)
    said = training.reasons().values()
    assert any("no CIFAR-10 in /storage/none" in reason for reason in said), said
    assert any("Nothing is downloaded" in reason for reason in said), said
