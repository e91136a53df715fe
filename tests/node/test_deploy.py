"""The shipped manifests in a cluster: the server runs as its Deployment, behind its Service."""

from __future__ import annotations

import json

import pytest

from harness.api import ApiError
from harness.cluster import Cluster
from harness.node import deploy
from harness.node.nodes import Nodes
from node import support

_COMPONENT = {"app.kubernetes.io/component": "server"}


@pytest.fixture(autouse=True)
def _installed(tfadmit: None) -> None:
    """Every test here is about the installed webhook."""


def servers(cluster: Cluster) -> list[support.Json]:
    pods = cluster.list("Pod", deploy.NAMESPACE, labels=_COMPONENT)
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def test_three_replicas_are_available_and_on_both_nodes(cluster: Cluster, nodes: Nodes):
    status = cluster.get("Deployment", deploy.DEPLOYMENT, deploy.NAMESPACE)["status"]
    assert (status["availableReplicas"], status["readyReplicas"]) == (3, 3)
    assert {pod["spec"]["nodeName"] for pod in servers(cluster)} == set(nodes.names[:3])


def test_the_server_runs_as_user_65532_from_a_root_that_cannot_be_written(cluster: Cluster):
    name = servers(cluster)[0]["metadata"]["name"]
    command = ("sh", "-c", "id -u; touch /opt/tfadmit/x || touch /x || touch /tmp/x && ls /tmp/x")
    done = cluster.kubectl("exec", name, "-n", deploy.NAMESPACE, "--", *command)
    assert done.stdout == "65532\n/tmp/x\n"
    assert done.stderr.count("Read-only file system") == 2


def test_the_namespace_refuses_what_restricted_pod_security_forbids(cluster: Cluster):
    pod = support.pod(deploy.NAMESPACE, "root", "id", securityContext={"privileged": True})
    with pytest.raises(ApiError, match='violates PodSecurity "restricted:latest": privileged'):
        cluster.create(pod)


def test_the_api_server_calls_the_webhook_through_its_service(cluster: Cluster, namespace: str):
    runtime = cluster.get("ClusterTrainingRuntime", "tensorflow-distributed")
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    labels = job["template"]["spec"]["template"]["metadata"]["labels"]
    # The label that the webhook copied: the file has it on the runtime only.
    assert labels == {"trainer.kubeflow.org/framework": "tensorflow"}
    hooks = cluster.get("MutatingWebhookConfiguration", "tfadmit")["webhooks"]
    assert all(hook["clientConfig"]["caBundle"] for hook in hooks)
    assert all("url" not in hook["clientConfig"] for hook in hooks)
    assert {hook["clientConfig"]["service"]["name"] for hook in hooks} == {"tfadmit-webhook"}


def test_the_smallest_job_prints_the_cluster_that_its_pods_were_given(
    cluster: Cluster, namespace: str
):
    trainjob = support.example("trainjob-smallest.yaml", namespace=namespace)
    # The file names an image of a registry.
    trainjob["spec"]["trainer"]["image"] = "tfadmit/webhook:0.1.0"
    cluster.apply(trainjob)
    support.complete(cluster, namespace, "tf-smallest", seconds=90)
    for index in range(3):
        config = json.loads(support.worker_logs(cluster, namespace, "tf-smallest", index))
        assert config["task"] == {"type": "worker", "index": index}
        assert config["cluster"]["worker"] == [
            f"tf-smallest-node-0-{i}.tf-smallest.{namespace}.svc.cluster.local:12345"
            for i in range(3)
        ]


def test_every_server_pod_may_be_replaced_one_at_a_time_only(cluster: Cluster):
    budget = cluster.get("PodDisruptionBudget", deploy.DEPLOYMENT, deploy.NAMESPACE)["status"]
    assert budget["expectedPods"] == 3
    assert budget["disruptionsAllowed"] == 1


def test_the_commands_for_administrators_find_all_well(cluster: Cluster):
    deploy.tfadmit(cluster, "certs", "status")


def test_two_holders_of_certificates_are_available(cluster: Cluster):
    status = cluster.get("Deployment", deploy.CERTIFICATES, deploy.NAMESPACE)["status"]
    assert status["availableReplicas"] == 2
