"""The shipped runtimes with several roles, and with one task, on the real controllers."""

from __future__ import annotations

import pytest
import yaml

from cluster import phases, support
from harness import install

pytestmark = pytest.mark.usefixtures("tfadmit")

NAME = "mnist"
VARIANTS = support.ROOT / "deploy" / "variants"


def runtime(cluster, file):
    """A runtime of deploy/runtimes, or of a variant as kustomize makes it."""
    variant, _, name = file.rpartition("/")
    if variant:
        shipped = install.render(cluster, VARIANTS / variant)
    else:
        shipped = support.load(f"deploy/runtimes/{name}.yaml")
    (found,) = [item for item in shipped if item["metadata"]["name"] == name]
    return found


def started(cluster, namespace, file, *, count, **trainer):
    """The pods of a TrainJob on the user's own copy of a runtime."""
    content = runtime(cluster, file)
    content["kind"] = "TrainingRuntime"
    content["metadata"]["namespace"] = namespace
    name = content["metadata"]["name"]
    cluster.apply(content)
    job = support.trainjob(namespace, runtime=name, name=NAME, **trainer)
    cluster.wait(
        lambda: support.applied(cluster, job), until=lambda done: done.returncode == 0,
        what="the TrainJob",
    )  # fmt: skip
    return phases.tasks(cluster, namespace, count=count)


def test_all_roles_know_each_other_and_the_workers_are_as_many_as_asked(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-ps", count=5, numNodes=3)
    assert sorted(pods) == [
        ("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2),
    ]  # fmt: skip
    where = f"{NAME}.{namespace}.svc.cluster.local:12345"
    cluster_of_all = {
        "chief": [f"{NAME}-chief-0-0.{where}"],
        "worker": [f"{NAME}-node-0-{index}.{where}" for index in range(3)],
        "ps": [f"{NAME}-ps-0-0.{where}"],
    }
    for (role, index), pod in pods.items():
        assert support.tf_config(pod) == {
            "cluster": cluster_of_all,
            "task": {"type": role, "index": index},
        }


def test_what_a_trainjob_says_reaches_all_roles(cluster, namespace):
    program = {
        "image": "registry.example.com/mine:1",
        "command": ["tfadmit-run", "--server", "--"],
        "args": ["python", "train.py"],
    }
    limits = {"cpu": "2", "memory": "4Gi"}
    pods = started(
        cluster, namespace, "evaluator/tensorflow-ps-evaluator", count=5, numNodes=2, **program,
        env=[{"name": "EPOCHS", "value": "3"}], resourcesPerNode={"limits": limits},
    )  # fmt: skip
    assert {role for role, _ in pods} == {"chief", "worker", "ps", "evaluator"}
    for pod in pods.values():
        (container,) = pod["spec"]["containers"]
        assert {name: container[name] for name in program} == program
        assert container["resources"]["limits"] == limits
        assert support.env(pod)["EPOCHS"] == "3"


def test_without_a_program_of_the_trainjob_all_roles_run_that_of_the_runtime(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-ps", count=4)
    programs = {
        (container["image"], *container["command"])
        for pod in pods.values()
        for container in pod["spec"]["containers"]
    }
    assert len(programs) == 1


def test_no_parameter_server_is_left_over_when_the_chief_has_succeeded(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-ps", count=4)
    phases.end(cluster, pods["chief", 0], code=0)
    assert phases.ended(cluster, namespace, NAME) == "Complete"
    left = support.pods(cluster, namespace, count=1)
    assert [phases.task(pod) for pod in left] == [("chief", 0)]


@pytest.mark.parametrize("role", ["chief", "worker", "ps"])
def test_a_fault_of_the_program_fails_at_once_and_keeps_the_pod(cluster, namespace, role):
    pods = started(cluster, namespace, "tensorflow-ps", count=4)
    phases.end(cluster, pods[role, 0], code=1)
    assert phases.ended(cluster, namespace, NAME) == "Failed"
    names = [pod["metadata"]["name"] for pod in cluster.list("Pod", namespace)]
    assert pods[role, 0]["metadata"]["name"] in names


def test_an_eviction_starts_all_tasks_again_and_is_not_counted(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-ps", count=4)
    for _ in range(3):  # one more than maxRestarts
        phases.end(cluster, pods["ps", 0], code=137, disrupted=True)
        pods = phases.again(cluster, namespace, pods)
    status = cluster.get("JobSet", NAME, namespace)["status"]
    assert status["restarts"] == 3
    assert not status.get("restartsCountTowardsMax")


def test_an_eviction_by_the_api_server_is_seen_as_one(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-ps", count=4)
    phases.evict(cluster, pods["worker", 1])
    assert set(phases.again(cluster, namespace, pods)) == set(pods)
    status = cluster.get("JobSet", NAME, namespace)["status"]
    assert status["restarts"] == 1
    assert not status.get("restartsCountTowardsMax")


def test_another_failure_starts_all_tasks_again_at_most_twice(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-ps", count=4)
    for _ in range(2):
        phases.end(cluster, pods["worker", 1], code=75)
        pods = phases.again(cluster, namespace, pods)
    phases.end(cluster, pods["worker", 1], code=75)
    assert phases.ended(cluster, namespace, NAME) == "Failed"


def test_the_evaluator_knows_the_others_and_they_do_not_know_it(cluster, namespace):
    pods = started(cluster, namespace, "evaluator/tensorflow-ps-evaluator", count=5)
    assert ("evaluator", 0) in pods
    for (role, _), pod in pods.items():
        found = set(support.tf_config(pod)["cluster"])
        assert found == {"chief", "worker", "ps"} | ({role} & {"evaluator"})
    phases.end(cluster, pods["chief", 0], code=0)
    assert phases.ended(cluster, namespace, NAME) == "Complete"


def test_a_single_task_is_a_cluster_of_one(cluster, namespace):
    pods = started(cluster, namespace, "tensorflow-single", count=1)
    host = f"{NAME}-node-0-0.{NAME}.{namespace}.svc.cluster.local:12345"
    assert support.tf_config(pods["worker", 0]) == {
        "cluster": {"worker": [host]},
        "task": {"type": "worker", "index": 0},
    }
    phases.end(cluster, pods["worker", 0], code=0)
    assert phases.ended(cluster, namespace, NAME) == "Complete"


GANGS = {
    "volcano": ("podgroups.scheduling.volcano.sh", "volcano"),
    "coscheduling": ("podgroups.scheduling.x-k8s.io", "scheduler-plugins-scheduler"),
}


@pytest.mark.parametrize("variant", GANGS)
@pytest.mark.parametrize(("base", "nodes", "count"), [("ps", 3, 5), ("single", 1, 1)])
def test_the_pod_group_has_as_many_members_as_there_are_pods(
    cluster, namespace, variant, base, nodes, count
):
    resource, scheduler = GANGS[variant]
    support.needs_pod_groups(cluster)
    name = f"{variant}/tensorflow-{base}-{variant}"
    pods = started(cluster, namespace, name, count=count, numNodes=nodes)
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {scheduler}
    found = cluster.kubectl("get", resource, NAME, "-n", namespace, "-o", "yaml")
    assert yaml.safe_load(found.stdout)["spec"]["minMember"] == count
