"""One runtime with every role: what TensorFlow's own resolver makes of each pod's TF_CONFIG."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cluster import phases, support
from harness import install, tools
from training import environment

pytestmark = pytest.mark.usefixtures("tfadmit")

EVALUATOR = support.ROOT / "deploy" / "variants" / "evaluator"
RESOLVE = Path(__file__).parent / "scripts" / "resolve.py"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"


@pytest.fixture(scope="session")
def tensorflow():
    try:
        return environment.tensorflow()
    except tools.UnavailableError as error:
        support.give_up(str(error))


@pytest.fixture
def runtime(cluster, namespace):
    """The name of a user's copy of the shipped runtime: chief, workers, ps and evaluator."""
    (content,) = install.render(cluster, EVALUATOR)
    content["kind"] = "TrainingRuntime"
    content["metadata"]["namespace"] = namespace
    cluster.apply(content)
    return content["metadata"]["name"]


def started(cluster, namespace, runtime, *, name, replicas, count):
    """The pods of a TrainJob with three workers, by task."""
    job = support.trainjob(namespace, runtime=runtime, name=name, numNodes=3)
    metadata = {"annotations": {"tfadmit.dev/replicas": replicas}}
    patch = {"template": {"metadata": metadata}}
    job["spec"]["runtimePatches"] = [{"manager": "example.com/me", "trainingRuntimeSpec": patch}]
    cluster.wait(
        lambda: support.applied(cluster, job),
        until=lambda done: done.returncode == 0,
        what=f"TrainJob {name}",
    )
    pods = cluster.wait(
        lambda: [pod for pod in phases.live(cluster, namespace) if belongs(pod, name)],
        until=lambda found: len(found) == count,
        what=f"{count} pods of {name}",
        timeout=60,
    )
    return {phases.task(pod): pod for pod in pods}


def belongs(pod, name):
    return pod["metadata"]["labels"][JOBSET_NAME] == name


def told(tensorflow, pods):
    """What TensorFlow reads in each pod, by task."""
    texts = [support.env(pod)["TF_CONFIG"] for pod in pods.values()]
    done = subprocess.run(
        [tensorflow.python, RESOLVE],
        input=json.dumps(texts), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(pods, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    ("replicas", "servers", "evaluators"),
    [("ps=2", 2, 1), ("ps=4", 4, 1), ("ps=2,evaluator=0", 2, 0)],
)
def test_tensorflow_accepts_every_tasks_cluster_and_they_agree(
    cluster, namespace, tensorflow, runtime, replicas, servers, evaluators
):
    sizes = {"chief": 1, "worker": 3, "ps": servers}
    everybody = {**sizes, "evaluator": evaluators}
    pods = started(
        cluster, namespace, runtime,
        name="mnist", replicas=replicas, count=sum(everybody.values()),
    )  # fmt: skip
    assert set(pods) == {
        (role, index) for role, count in everybody.items() for index in range(count)
    }
    found = told(tensorflow, pods)
    shared = found["chief", 0]["cluster"]
    assert {role: len(hosts) for role, hosts in shared.items()} == sizes
    for (role, index), facts in found.items():
        host = f"{pods[role, index]['spec']['hostname']}.mnist.{namespace}.svc.cluster.local"
        own = {"evaluator": [f"{host}:12345"]} if role == "evaluator" else {}
        assert facts["cluster"] == {**shared, **own}
        assert facts["task"] == [role, index]
        assert facts["own"] == f"{host}:12345"
        assert facts["chief"] is (role in ("chief", "evaluator"))


def test_trainjobs_with_other_numbers_stand_beside_each_other(cluster, namespace, runtime):
    two = started(cluster, namespace, runtime, name="two", replicas="ps=2", count=7)
    four = started(cluster, namespace, runtime, name="four", replicas="ps=4", count=9)
    none = started(cluster, namespace, runtime, name="none", replicas="evaluator=0", count=5)
    servers = [sum(role == "ps" for role, _ in pods) for pods in (two, four, none)]
    assert servers == [2, 4, 1]
    assert [("evaluator", 0) in pods for pods in (two, four, none)] == [True, True, False]
