"""The main job: a TrainJob applied to a real cluster comes out as TensorFlow tasks."""

import pytest

from cluster import support
from tfadmit_trainer import encoding

pytestmark = pytest.mark.usefixtures("tfadmit")


@pytest.fixture
def runtime(cluster, namespace):
    cluster.apply(support.shipped_runtime(name="tensorflow-distributed", namespace=namespace))
    return "tensorflow-distributed"


@pytest.mark.parametrize("nodes", [3, 5, 1])
def test_every_pod_of_a_trainjob_is_a_task(cluster, namespace, runtime, nodes):
    cluster.apply(support.trainjob(namespace, runtime=runtime, numNodes=nodes))
    pods = support.pods(cluster, namespace, count=nodes)
    hosts = [f"mnist-node-0-{i}.mnist.{namespace}.svc.cluster.local:12345" for i in range(nodes)]
    for pod in pods:
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        assert support.tf_config(pod) == {
            "cluster": {"worker": hosts},
            "task": {"type": "worker", "index": int(index)},
        }
        env = support.env(pod)
        assert env["TF_TASK_TYPE"] == "worker"
        assert env["TF_TASK_INDEX"] == index
        assert env["TF_WORKER_HOSTS"] == ",".join(hosts)
        assert env["TF_NUM_WORKERS"] == str(nodes)
        # the address of this task is where this pod really is
        own = f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}."
        assert hosts[int(index)].startswith(own)
    assert [support.status(pod)["index"] for pod in pods] == list(range(nodes))


def test_a_trainjob_without_a_trainer_section_gets_the_runtimes_nodes(cluster, namespace, runtime):
    cluster.apply(support.trainjob(namespace, runtime=runtime))
    (pod,) = support.pods(cluster, namespace, count=1)
    assert len(support.tf_config(pod)["cluster"]["worker"]) == 1


def test_the_environment_that_was_injected_is_read_back_by_the_library(cluster, namespace, runtime):
    cluster.apply(support.trainjob(namespace, runtime=runtime, numNodes=2))
    for index, pod in enumerate(support.pods(cluster, namespace, count=2)):
        task = encoding.task_from(support.env(pod))
        assert (task.role, task.index, task.cluster.size("worker")) == ("worker", index, 2)


def test_the_trainjobs_environment_wins_over_runtime_and_webhook(cluster, namespace, runtime):
    env = {"TF_WORKER_PORT": "23456", "EPOCHS": "3", "NCCL_DEBUG": "WARN"}
    cluster.apply(
        support.trainjob(
            namespace,
            runtime=runtime,
            numNodes=2,
            env=[{"name": name, "value": value} for name, value in env.items()],
            resourcesPerNode={"limits": {"nvidia.com/gpu": "1"}},
        )
    )
    for pod in support.pods(cluster, namespace, count=2):
        found = support.env(pod)
        assert {name: found[name] for name in env} == env
        addresses = support.tf_config(pod)["cluster"]["worker"]
        assert {address.rpartition(":")[2] for address in addresses} == {"23456"}
        assert found["NCCL_IB_DISABLE"] == "1"


def test_a_trainjobs_own_tf_config_is_kept_once(cluster, namespace, runtime):
    own = '{"cluster":{"worker":["mine:1"]},"task":{"type":"worker","index":0}}'
    cluster.apply(
        support.trainjob(
            namespace, runtime=runtime, numNodes=1, env=[{"name": "TF_CONFIG", "value": own}]
        )
    )
    (pod,) = support.pods(cluster, namespace, count=1)
    assert support.env(pod)["TF_CONFIG"] == own
    assert support.status(pod)["kept"] == ["TF_CONFIG"]


def test_a_users_variable_can_refer_to_the_task_index(cluster, namespace, runtime):
    cluster.apply(
        support.trainjob(
            namespace,
            runtime=runtime,
            numNodes=1,
            env=[{"name": "SHARD", "value": "part-$(TF_TASK_INDEX)"}],
        )
    )
    (pod,) = support.pods(cluster, namespace, count=1)
    names = list(support.env(pod))
    # Kubernetes expands references to earlier variables only.
    assert names.index("TF_TASK_INDEX") < names.index("SHARD")


def test_the_shipped_cluster_runtime_works_with_the_shipped_example(cluster, namespace):
    runtime = support.shipped_runtime(name=f"tensorflow-distributed-{namespace}")
    with support.applied_runtime(cluster, runtime) as name:
        job = support.trainjob(namespace, runtime=name, numNodes=2)
        job["spec"]["runtimeRef"]["kind"] = "ClusterTrainingRuntime"
        cluster.apply(job)
        for pod in support.pods(cluster, namespace, count=2):
            assert support.env(pod)["TF_NUM_WORKERS"] == "2"
