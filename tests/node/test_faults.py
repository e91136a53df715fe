"""What goes wrong in a cluster, done to a training: it goes on, or says soon what is wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.cluster import Cluster
from harness.node.nodes import Nodes
from node import support, trainings
from node.trainings import Training

pytestmark = pytest.mark.timeout(900)

# Only the second worker, then as always; exec, so that signals reach the program.
_START = 'exec tfadmit-run -- "$@"'
_LATE = f'if [ "$TF_TASK_INDEX" = 1 ]; then sleep "$LATE"; fi; {_START}'


def test_undisturbed_all_workers_learn_and_stay_equal(training: Training, data: Path):
    training.start()
    training.completes()
    curve = trainings.losses(training.log(0))
    assert sorted(curve) == [1, 2, 3, 4]
    assert curve[4] < curve[1] / 2
    same = trainings.fingerprints(training.log(0))
    assert [epoch for epoch, _ in same] == ["1", "2", "3", "4"]
    assert trainings.fingerprints(training.log(1)) == same
    assert training.restarts() == (0, 0)
    # All evaluate, or worker 0 would hang; it alone prints the result, and its files alone count.
    assert "Test Accuracy" in training.log(0)
    assert "Test Accuracy" not in training.log(1)
    saved = {str(file.relative_to(data / "out")) for file in (data / "out").rglob("*")}
    assert "model/cifar10.keras" in saved, saved
    assert [name for name in saved if name.endswith(".keras")] == ["model/cifar10.keras"]


def test_a_killed_worker_restarts_all_and_they_resume(training: Training, nodes: Nodes):
    training.start()
    training.says(1, "weights after epoch 1")
    pod = training.pod(1)
    assert pod
    _kill(nodes, pod)
    training.completes()
    assert training.restarts() == (1, 1)
    assert "restored /storage/out/" in training.log(0)
    assert 1 not in trainings.losses(training.log(0))
    assert 4 in trainings.losses(training.log(0))


def test_an_evicted_worker_restarts_all_and_it_is_not_counted(training: Training):
    training.start()
    training.says(1, "weights after epoch 1")
    training.evict(1)
    training.completes()
    assert training.restarts() == (1, 0)
    assert "restored /storage/out/" in training.log(0)


def test_a_deleted_pod_restarts_all_and_they_resume(
    training: Training, cluster: Cluster, namespace: str
):
    training.start()
    training.says(0, "weights after epoch 1")
    pod = training.pod(0)
    assert pod
    cluster.delete("Pod", pod["metadata"]["name"], namespace)
    training.completes()
    assert training.restarts()[0] == 1
    assert "restored /storage/out/" in training.log(0)


def test_a_worker_that_comes_30_seconds_late_is_waited_for(training: Training):
    training.start(
        *("sh", "-c", _LATE, "start", *trainings.EXAMPLE), env={"LATE": "30", "EPOCHS": "2"}
    )
    training.completes()
    assert training.restarts() == (0, 0)
    assert sorted(trainings.losses(training.log(0))) == [1, 2]


def test_a_worker_that_never_comes_is_named_within_the_deadline(training: Training):
    """Its pod cannot be placed anywhere, so nobody finds its name."""
    runtime = training.runtime()
    pod = trainings.pod_of(runtime)
    # One for each node: the third has none.
    pod["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {
                        "matchLabels": {"jobset.sigs.k8s.io/jobset-name": trainings.NAME}
                    },
                }
            ]
        }
    }
    training.start(
        *("tfadmit-run", "--", *trainings.EXAMPLE),
        workers=3, runtime=runtime, env={"TFADMIT_BARRIER_TIMEOUT": "10"},
    )  # fmt: skip
    training.fails()
    # The shipped runtime tries twice more.
    assert training.restarts() == (2, 2)
    said = training.reasons()
    # The two that were there; the third never was.
    assert len(said) == 2
    (absent,) = {0, 1, 2} - said.keys()
    for reason in said.values():
        assert reason.startswith("75: ")
        assert f"worker {absent} (1 of 3) not found in 10 s" in reason
        assert f"grep -e {trainings.NAME}-node-0-{absent}-" in reason


def test_a_wrong_tf_config_fails_at_once_and_says_so(training: Training):
    training.start(
        *("tfadmit-run", "--", *trainings.EXAMPLE), env={"TF_CONFIG": '{"cluster": {"worker": '}
    )
    training.fails()
    assert training.restarts() == (0, 0)
    said = training.reasons()
    assert said
    for reason in said.values():
        assert reason.startswith("2: ")
        assert "TF_CONFIG" in reason


def test_a_dns_that_is_down_for_20_seconds_is_waited_for(training: Training, nodes: Nodes):
    assert nodes.dns
    with nodes.dns.down():
        training.start(*("tfadmit-run", "--", *trainings.EXAMPLE), env={"EPOCHS": "2"})
        time.sleep(20)
        assert "tasks found" not in training.log(0)
    training.completes()
    assert training.restarts() == (0, 0)
    assert "all 2 tasks found" in training.log(0)


def _kill(nodes: Nodes, pod: support.Json) -> None:
    """End a container's first process by SIGKILL, which it cannot send to itself."""
    (status,) = pod["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    (node,) = [node for node in nodes.own if node.plan.name == pod["spec"]["nodeName"]]
    node.runtime.ctr("tasks", "kill", "--signal", "SIGKILL", container)
