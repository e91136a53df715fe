"""`tfadmit ps`, `show` and `logs` where containers really run, crash and are taken away.

In `tests/cluster/test_jobs.py` a test reports what a kubelet would; here it is one. The image is
small and has Python; without tfadmit in the cluster the tasks are called `node-0`, not `worker-0`.
"""

from __future__ import annotations

import io
import threading
from contextlib import redirect_stderr, redirect_stdout

import pytest

from harness.cluster import Cluster, load
from harness.node import deploy, images
from node import trainings
from tfadmit_client import api, cli
from tfadmit_client.cluster import live_jobs
from tfadmit_client.logs import follow
from tfadmit_client.logs.line import Line

pytestmark = pytest.mark.timeout(300)

COUNT = "import time\nfor i in range({}): print('line', i, flush=True); time.sleep({})"
CRASH = "import time; print('loading', flush=True); time.sleep(1); raise ValueError('no data')"
HUNGRY = "x = []\nwhile True: x.append(bytearray(10_000_000))"
# The first attempt waits until it is taken away.
ONCE = """
import os, time
attempt = os.environ["ATTEMPT"]
print("attempt", attempt, flush=True)
time.sleep(3600 if attempt == "0" else 1)
"""


@pytest.fixture
def mnist(cluster: Cluster, namespace: str):
    """Start a job of two tasks that run a Python program."""

    def start(program: str, *, tasks: int = 2, image: str = images.WEBHOOK.name, **trainer):
        (runtime,) = load(deploy.RUNTIME)
        runtime["kind"] = "TrainingRuntime"
        runtime["metadata"] |= {"name": "small", "namespace": namespace}
        (pod,) = trainings.pods_of(runtime)
        pod["terminationGracePeriodSeconds"] = 1
        pod["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
        field = "metadata.annotations['jobset.sigs.k8s.io/restart-attempt']"
        pod["containers"][0]["env"] = [
            {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": field}}}
        ]
        cluster.apply(runtime)
        command = ["python", "-u", "-c", program]
        cluster.apply(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "mnist", "namespace": namespace},
                "spec": {
                    "runtimeRef": {"name": "small", "kind": "TrainingRuntime"},
                    "trainer": {
                        "numNodes": tasks, "image": image, "command": command, **trainer,
                    },
                },
            }
        )  # fmt: skip

    return start


@pytest.fixture
def run(cluster: Cluster, namespace: str):
    def run(*words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.main([*words, "-n", namespace, "--kubeconfig", str(cluster.kubeconfig)])
        return code, out.getvalue(), err.getvalue()

    return run


def reaches(cluster: Cluster, namespace: str, word: str, *, code: str | None = None):
    return cluster.wait(
        lambda: api.job("mnist", namespace=namespace, kubeconfig=str(cluster.kubeconfig)),
        until=lambda it: it.state.text == word and code in (None, it.reason.code),
        what=f"state {word} {code or ''}",
        timeout=120,
    )


def test_row_15_all_lines_of_all_tasks_are_followed_to_the_end(cluster, namespace, mnist, run):
    mnist(COUNT.format(200, 0.02))
    code, out, err = run("logs", "-f", "mnist")
    assert code == 0, err
    for index in range(2):
        heads = (f"node-{index} | ", f"worker-{index} | ")
        mine = [line.partition(" | ")[2] for line in out.splitlines() if line.startswith(heads)]
        assert mine == [f"line {number}" for number in range(200)]
    assert err.splitlines()[-1] == "mnist: Succeeded"
    assert run("logs", "mnist")[1].count("line 199") == 2


def test_row_15_an_eviction_is_followed_into_the_next_attempt(cluster, namespace, mnist):
    mnist(ONCE)
    lines: list[Line] = []
    follower = follow.Follower(
        live_jobs.connect(kubeconfig=str(cluster.kubeconfig)), namespace=namespace, name="mnist"
    )
    thread = threading.Thread(target=lambda: lines.extend(follower.lines()), daemon=True)
    thread.start()
    # A pod that is evicted before its program began has no line.
    cluster.wait(
        lambda: len(lines), until=lambda count: count == 2, what="a line of each", timeout=120
    )
    pods = cluster.list("Pod", namespace)
    trainings.evict(cluster, pods[0])
    thread.join(timeout=120)
    assert not thread.is_alive()
    said = sorted((line.replica[-1], line.attempt, line.text) for line in lines)
    assert said == [
        ("0", 0, "attempt 0"), ("0", 1, "attempt 1"), ("1", 0, "attempt 0"), ("1", 1, "attempt 1"),
    ]  # fmt: skip
    assert follower.final
    assert (follower.final.state.word, follower.final.attempt) == ("Succeeded", 1)


def test_row_14_the_last_line_of_a_traceback_is_the_reason(cluster, namespace, mnist, run):
    mnist(CRASH)
    failed = reaches(cluster, namespace, "Failed")
    assert failed.reason.code == "exit"
    assert failed.reason.text.endswith(" exit 1: ValueError: no data")
    assert run("logs", "mnist")[1].count("ValueError: no data") >= 1


def test_row_14_an_image_that_is_not_there(cluster, namespace, mnist):
    mnist("", image="localhost:1/none:1")
    found = reaches(cluster, namespace, "Pending", code="image")
    # of one task while the other has not come so far, then of both
    assert "image localhost:1/none:1 cannot be pulled: failed to pull" in found.reason.text


def test_row_14_a_node_that_is_too_small(cluster, namespace, mnist):
    limits = {"limits": {"cpu": "1000"}}
    mnist("", resourcesPerNode=limits)
    found = reaches(cluster, namespace, "Pending", code="unschedulable")
    assert "Insufficient cpu" in found.reason.text
    assert "preemption" not in found.reason.text


def test_row_14_a_secret_that_is_not_there(cluster, namespace, mnist):
    secret = {"secretKeyRef": {"name": "keys", "key": "a"}}
    mnist("", tasks=1, env=[{"name": "KEY", "valueFrom": secret}])
    assert reaches(cluster, namespace, "Pending", code="config").reason.text == (
        'secret "keys" not found'
    )


def test_row_14_a_command_that_is_not_there(cluster, namespace, mnist):
    mnist("", command=["no-such-program"])
    failed = reaches(cluster, namespace, "Failed")
    assert '"no-such-program": executable file not found in $PATH' in failed.reason.text


def test_row_14_memory_that_is_not_enough(cluster, namespace, mnist):
    mnist(HUNGRY, tasks=1, resourcesPerNode={"limits": {"memory": "64Mi", "cpu": "1"}})
    failed = reaches(cluster, namespace, "Failed")
    assert failed.reason.text.endswith(" exit 137 OOMKilled (limit 64Mi)")
    assert failed.attempt == 2


def test_row_25_stopped_and_started_with_the_true_state(cluster, namespace, mnist, run):
    mnist(COUNT.format(100_000, 0.1))
    reaches(cluster, namespace, "Running")
    assert run("stop", "mnist")[0] == 0
    reaches(cluster, namespace, "Suspended")
    cluster.wait(lambda: not cluster.list("Pod", namespace), what="no pods", timeout=60)
    assert run("start", "mnist")[0] == 0
    reaches(cluster, namespace, "Running")
    assert run("rm", "mnist")[:2] == (0, "mnist is deleted\n")
    assert cluster.list("Pod", namespace) == []
