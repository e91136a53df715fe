"""The shipped CIFAR-10 examples on the real controllers: what Trainer asks of a gang scheduler.

No scheduler runs here. Volcano's part begins where this ends: at pods that name it and a PodGroup.
"""

from __future__ import annotations

import pytest
import yaml

from cluster import support
from harness.cluster import Cluster

pytestmark = pytest.mark.usefixtures("volcano", "tfadmit")

EXAMPLES = support.ROOT / "deploy/examples/cifar10"
SHIPPED = EXAMPLES / "volcano/tensorflow-volcano-trainjob-integration.yaml"
CUSTOM = EXAMPLES / "runtime/tensorflow-custom-runtime.yaml"
# PodGroups of two schedulers share all names but this one.
POD_GROUP = "podgroup-v1beta1"
NAME = "tf-distributed-training"
RUNTIME = "tensorflow-distributed-volcano"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture(scope="session")
def volcano(cluster: Cluster) -> None:
    """Nothing more than its kinds; a cluster that the user names may lack them."""
    support.needs_pod_groups(cluster)


@pytest.fixture(autouse=True)
def _without_leftovers(cluster: Cluster, namespace: str):
    """Removes what is not in the namespace; the TrainJob goes first, as it holds its runtime."""
    yield
    cluster.delete("TrainJob", NAME, namespace)
    for kind, name in (("ClusterTrainingRuntime", RUNTIME), ("Queue", "tensorflow")):
        gone(cluster, kind, name)


def gone(cluster: Cluster, kind: str, name: str) -> None:
    cluster.delete(kind, name)
    cluster.wait(
        lambda: [item for item in cluster.list(kind) if item["metadata"]["name"] == name],
        until=lambda left: not left,
        what=f"{kind} {name} is gone",
    )


def apply_text(cluster: Cluster, namespace: str, text: str) -> None:
    done = cluster.kubectl_apply(text, "-n", namespace)
    assert done.returncode == 0, done.stderr


def apply_shipped(cluster: Cluster, namespace: str) -> None:
    """The one command of the file's head."""
    apply_text(cluster, namespace, SHIPPED.read_text())


def rendered(cluster: Cluster, folder: str) -> str:
    return cluster.kubectl("kustomize", str(EXAMPLES / folder)).stdout


def pod_group(cluster: Cluster, namespace: str) -> support.Json:
    return cluster.wait(
        lambda: cluster.get(POD_GROUP, NAME, namespace), what="the PodGroup of the TrainJob"
    )


def test_one_command_applies_everything_to_a_cluster_that_has_nothing_of_it(cluster, namespace):
    apply_shipped(cluster, namespace)
    pods = support.pods(cluster, namespace, count=2)
    hosts = [f"{NAME}-node-0-{i}.{NAME}.{namespace}.svc.cluster.local:12345" for i in range(2)]
    for index, pod in enumerate(pods):
        assert support.tf_config(pod) == {
            "cluster": {"worker": hosts},
            "task": {"type": "worker", "index": index},
        }
    jobset = cluster.get("JobSet", NAME, namespace)
    assert jobset["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "tensorflow"
    (job,) = jobset["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["completions"] == 2
    assert cluster.get("Queue", "tensorflow")["spec"]["weight"] == 1
    # the script is where the pods look for it
    script = cluster.get("ConfigMap", NAME, namespace)["data"]
    assert list(script) == ["train.py"]


def test_the_pods_are_volcanos_and_have_infiniband(cluster, namespace):
    apply_shipped(cluster, namespace)
    for pod in support.pods(cluster, namespace, count=2):
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"][GROUP] == NAME
        assert pod["metadata"]["annotations"][NETWORKS] == "hostdevice-net"
        assert support.status(pod)["network"] == "infiniband"
        env = support.env(pod)
        assert (env["NCCL_IB_DISABLE"], env["NCCL_SOCKET_IFNAME"]) == ("0", "net")
        assert env["NCCL_DEBUG_SUBSYS"] == "INIT,NET,IB"
        # the TrainJob names GPUs only, and the runtime's adapters stay
        (node,) = pod["spec"]["containers"]
        extended = {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "2"}
        assert node["resources"] == {"requests": extended, "limits": extended}


def test_the_pod_group_has_the_size_the_queue_and_the_topology(cluster, namespace):
    apply_shipped(cluster, namespace)
    group = pod_group(cluster, namespace)
    assert group["spec"] == {
        "minMember": 2,
        "minResources": {"nvidia.com/gpu": "16", "nvidia.com/hostdev": "4"},
        "queue": "tensorflow",
        "networkTopology": {"mode": "soft", "highestTierAllowed": 1},
    }
    (owner,) = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("TrainJob", NAME)


def test_the_number_of_nodes_is_the_only_number_to_change(cluster, namespace):
    *others, job = support.load(str(SHIPPED.relative_to(support.ROOT)))
    job["spec"]["trainer"]["numNodes"] = 4
    cluster.apply([*others, job], namespace=namespace)
    for pod in support.pods(cluster, namespace, count=4):
        assert support.env(pod)["TF_NUM_WORKERS"] == "4"
    assert pod_group(cluster, namespace)["spec"]["minMember"] == 4


def test_a_trainjob_that_exists_keeps_its_number(cluster, namespace):
    """Why the file says: delete it first."""
    apply_shipped(cluster, namespace)
    change = '{"spec": {"trainer": {"numNodes": 4}}}'
    result = cluster.kubectl(
        "patch", "trainjob", NAME, "-n", namespace, "--type=merge", "-p", change, check=False
    )
    assert "field is immutable" in result.stderr


def test_without_infiniband_there_is_neither_adapter_nor_network(cluster, namespace):
    text = rendered(cluster, "volcano-without-infiniband")
    apply_text(cluster, namespace, text)
    for pod in support.pods(cluster, namespace, count=2):
        assert NETWORKS not in pod["metadata"]["annotations"]
        assert support.status(pod)["network"] == "tcp"
        env = support.env(pod)
        assert (env["NCCL_IB_DISABLE"], env["NCCL_SOCKET_IFNAME"]) == ("1", "eth0")
        assert "NCCL_DEBUG_SUBSYS" not in env
        (node,) = pod["spec"]["containers"]
        assert node["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    group = pod_group(cluster, namespace)
    assert group["spec"]["minResources"] == {"nvidia.com/gpu": "16"}


@pytest.mark.parametrize("infiniband", [True, False])
def test_the_custom_runtime_trains_cifar10_without_another_word(cluster, namespace, infiniband):
    text = CUSTOM.read_text() if infiniband else rendered(cluster, "runtime-without-infiniband")
    runtime = yaml.safe_load(text)
    runtime["metadata"]["name"] = f"cifar10-{namespace}"
    with support.applied_runtime(cluster, runtime) as name:
        job = support.trainjob(namespace, runtime=name, numNodes=2)
        job["spec"]["runtimeRef"]["kind"] = "ClusterTrainingRuntime"
        cluster.apply(job)
        for pod in support.pods(cluster, namespace, count=2):
            (node,) = pod["spec"]["containers"]
            assert node["command"] == ["python", "-m", "tfadmit_trainer.examples.cifar10"]
            assert support.status(pod)["network"] == ("infiniband" if infiniband else "tcp")
            assert (NETWORKS in pod["metadata"]["annotations"]) is infiniband
            assert support.env(pod)["TF_NUM_WORKERS"] == "2"


def test_of_the_two_runtimes_of_one_name_the_one_applied_last_counts(cluster, namespace):
    name = f"last-{namespace}"
    shipped = support.shipped_runtime(name=name)
    custom = yaml.safe_load(CUSTOM.read_text())
    custom["metadata"]["name"] = name
    try:
        for runtime, volumes in ((shipped, 1), (custom, 2), (shipped, 1)):
            cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(runtime))
            spec = cluster.get("ClusterTrainingRuntime", name)["spec"]["template"]["spec"]
            pod = spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
            assert len(pod["volumes"]) == volumes
            assert ("command" in pod["containers"][0]) is (runtime is custom)
    finally:
        cluster.delete("ClusterTrainingRuntime", name)


def test_coscheduling_gets_its_pod_group_as_well(cluster, namespace):
    runtime = support.shipped_runtime(name="gang", namespace=namespace)
    runtime["spec"]["podGroupPolicy"] = {"coscheduling": {"scheduleTimeoutSeconds": 120}}
    cluster.apply(runtime)
    cluster.apply(support.trainjob(namespace, runtime="gang", numNodes=3))
    for pod in support.pods(cluster, namespace, count=3):
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "mnist"
        assert support.env(pod)["TF_NUM_WORKERS"] == "3"
    found = cluster.kubectl(
        "get", "podgroups.scheduling.x-k8s.io", "mnist", "-n", namespace, "-o", "yaml"
    )
    assert yaml.safe_load(found.stdout)["spec"]["minMember"] == 3
