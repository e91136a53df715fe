"""JobSets and Jobs without Trainer: every shape, every role, the networks."""

import pytest

import builders
from builders import make_container, make_replicated_job
from cluster import support

pytestmark = pytest.mark.usefixtures("tfadmit")
NETWORKS = "k8s.v1.cni.cncf.io/networks"


def hosts(pod, role="worker"):
    return [host.partition(".")[0] for host in support.tf_config(pod)["cluster"][role]]


def indexes(pods):
    return [int(support.env(pod)["TF_TASK_INDEX"]) for pod in pods]


def test_one_job_per_node(cluster, namespace):
    cluster.apply(support.jobset(namespace, make_replicated_job(replicas=4, completions=1)))
    pods = support.pods(cluster, namespace, count=4)
    assert indexes(pods) == [0, 1, 2, 3]
    for pod in pods:
        assert hosts(pod) == [f"mnist-node-{j}-0" for j in range(4)]


def test_jobs_of_several_pods(cluster, namespace):
    cluster.apply(support.jobset(namespace, make_replicated_job(replicas=2, completions=3)))
    pods = support.pods(cluster, namespace, count=6)
    assert indexes(pods) == [0, 1, 2, 3, 4, 5]
    assert hosts(pods[0]) == [pod["spec"]["hostname"] for pod in pods]


def test_a_custom_subdomain(cluster, namespace):
    cluster.apply(support.jobset(namespace, make_replicated_job(completions=2), subdomain="ring"))
    for pod in support.pods(cluster, namespace, count=2):
        own = f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}.{namespace}.svc.cluster.local"
        assert pod["spec"]["subdomain"] == "ring"
        index = int(support.env(pod)["TF_TASK_INDEX"])
        assert support.tf_config(pod)["cluster"]["worker"][index] == f"{own}:12345"


def test_all_roles(cluster, namespace):
    ps = builders.LABEL | {"tfadmit.dev/role": "ps"}
    cluster.apply(
        support.jobset(
            namespace,
            make_replicated_job("chief", completions=1),
            make_replicated_job("worker", replicas=2, completions=2),
            make_replicated_job("params", replicas=2, completions=1, labels=ps),
            make_replicated_job("evaluator", completions=1),
        )
    )
    pods = support.pods(cluster, namespace, count=8)
    tasks = {}
    for pod in pods:
        config = support.tf_config(pod)
        role, index = config["task"]["type"], config["task"]["index"]
        tasks[pod["spec"]["hostname"]] = (role, index)
        assert support.env(pod)["TF_TASK_TYPE"] == role
        assert support.env(pod)["TF_NUM_WORKERS"] == "4"
        # the address at the own index is the own one
        assert hosts(pod, role)[index] == pod["spec"]["hostname"]
        # the evaluator stands in nobody's list but its own
        assert ("evaluator" in config["cluster"]) is (role == "evaluator")
    assert tasks == {
        "mnist-chief-0-0": ("chief", 0),
        "mnist-worker-0-0": ("worker", 0),
        "mnist-worker-0-1": ("worker", 1),
        "mnist-worker-1-0": ("worker", 2),
        "mnist-worker-1-1": ("worker", 3),
        "mnist-params-0-0": ("ps", 0),
        "mnist-params-1-0": ("ps", 1),
        "mnist-evaluator-0-0": ("evaluator", 0),
    }


def test_the_shipped_examples_without_trainer_come_up(cluster, namespace):
    for name in ("jobset-roles", "job-indexed"):
        for item in support.load(f"deploy/examples/{name}.yaml"):
            cluster.apply(item, namespace=namespace)
    created = cluster.wait(
        lambda: cluster.list("Pod", namespace),
        until=lambda pods: len(pods) >= 5 and not support.failures(cluster, namespace, text="fail"),
        what="the pods of the examples",
    )
    for pod in created:
        assert support.status(pod)["source"] in ("jobset", "job")


def test_a_plain_indexed_job(cluster, namespace):
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "ring", "namespace": namespace},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {"job-name": "plain"},
            },
        }
    )
    job = support.job(
        namespace, name="plain", completions=3, labels=builders.LABEL, subdomain="ring"
    )
    cluster.apply(job)
    for index, pod in enumerate(support.pods(cluster, namespace, count=3)):
        assert pod["spec"]["hostname"] == f"plain-{index}"
        assert support.tf_config(pod) == {
            "cluster": {
                "worker": [f"plain-{i}.ring.{namespace}.svc.cluster.local:12345" for i in range(3)]
            },
            "task": {"type": "worker", "index": index},
        }


# --- networks -----------------------------------------------------------------------------------


def requesting(resource, **fields):
    limits = {"limits": {resource: "2"}} if resource else {}
    return [make_container(resources=limits, **fields)]


@pytest.mark.parametrize(
    ("resource", "existing", "networks", "ib_disable", "profile"),
    [
        ("nvidia.com/hostdev", None, "hostdevice-net", "0", "infiniband"),
        ("nvidia.com/hostdev", "storage", "storage,hostdevice-net", "0", "infiniband"),
        ("rdma/hca", '[{"name":"storage"}]',
         '[{"name":"storage"},{"name":"hostdevice-net"}]', "0", "infiniband"),
        ("nvidia.com/gpu", None, None, "1", "tcp"),
        ("nvidia.com/gpu", "storage", "storage", "1", "tcp"),
        ("cpu", None, None, None, None),
        (None, None, None, None, None),
    ],
)  # fmt: skip
def test_the_network_follows_the_requested_resource(
    cluster, namespace, resource, existing, networks, ib_disable, profile
):
    annotations = {NETWORKS: existing} if existing else None
    job = make_replicated_job(
        completions=1, annotations=annotations, containers=requesting(resource)
    )
    cluster.apply(support.jobset(namespace, job))
    (pod,) = support.pods(cluster, namespace, count=1)
    assert pod["metadata"]["annotations"].get(NETWORKS) == networks
    assert support.env(pod).get("NCCL_IB_DISABLE") == ib_disable
    assert support.status(pod).get("network") == profile


def test_injecting_is_safe_beside_a_service_mesh(cluster, namespace):
    containers = [make_container("istio-proxy"), make_container("node"), make_container("logs")]
    cluster.apply(support.jobset(namespace, make_replicated_job(containers=containers)))
    pod = support.pods(cluster, namespace, count=3)[0]
    assert support.env(pod, "istio-proxy").get("TF_CONFIG") is None
    assert support.env(pod, "node")["TF_CONFIG"]
