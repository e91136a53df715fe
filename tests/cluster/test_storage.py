"""Data and results on a real API server: what it stores, and what Pod Security says to it."""

from __future__ import annotations

import json

import pytest

from builders import make_container, make_replicated_job
from cluster import phases, support
from harness.api import MERGE

pytestmark = pytest.mark.usefixtures("tfadmit")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
ASKING = {
    "tfadmit.dev/data": "train=s3://datasets/cifar10\nlabels=pvc://labels/2026",
    "tfadmit.dev/output": "s3://results/team-a",
    "tfadmit.dev/store-secret": "object-store",
}


def restrict(cluster, namespace):
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": {
                    "pod-security.kubernetes.io/enforce": "restricted",
                    "pod-security.kubernetes.io/enforce-version": "latest",
                },
            },
        }
    )


def test_pods_that_ask_are_admitted_in_a_restricted_namespace(cluster, namespace):
    restrict(cluster, namespace)
    container = make_container(securityContext=RESTRICTED)
    job = make_replicated_job(completions=2, annotations=ASKING, containers=[container])
    cluster.apply(support.jobset(namespace, job))
    first, second = support.pods(cluster, namespace, count=2)
    fetch, sync = first["spec"]["initContainers"]
    assert (fetch["name"], fetch.get("restartPolicy")) == ("tfadmit-fetch", None)
    assert (sync["name"], sync["restartPolicy"]) == ("tfadmit-sync", "Always")
    assert {"secretRef": {"name": "object-store"}} in sync["envFrom"]
    told = [json.loads(pod["metadata"]["annotations"]["tfadmit.dev/status"])["transfer"]
            for pod in (first, second)]  # fmt: skip
    assert told == [
        {"data": ["train", "labels"], "output": "s3://results/team-a", "saves": saves}
        for saves in (True, False)
    ]
    uid = cluster.list("JobSet", namespace)[0]["metadata"]["uid"]
    env = {item["name"]: item.get("value", "") for item in sync["env"]}
    assert (env["TFADMIT_JOB"], env["TFADMIT_RUN"]) == ("mnist", uid)
    assert support.env(first)["TFADMIT_OUTPUT_URI"] == "s3://results/team-a/mnist"
    assert support.failures(cluster, namespace, text="PodSecurity") == []


def test_an_address_that_makes_no_sense_is_told_by_the_job(cluster, namespace):
    annotations = {"tfadmit.dev/output": "s4://results"}
    job = make_replicated_job(completions=1, annotations=annotations)
    cluster.apply(support.jobset(namespace, job))
    (message, *_) = cluster.wait(
        lambda: support.failures(cluster, namespace, text="s4://results"),
        until=bool,
        what="an event about the address",
    )
    assert "annotation tfadmit.dev/output: 's4://results' has the scheme s4" in message


def test_data_that_cannot_be_had_ends_the_job_at_once(cluster, namespace):
    """Row 23: a mistake is told in seconds and not tried three times."""
    runtime = support.shipped_runtime(name="tensorflow-distributed", namespace=namespace)
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["metadata"] = {"annotations": ASKING}
    with support.applied_runtime(cluster, runtime) as name:
        cluster.apply(support.trainjob(namespace, runtime=name, numNodes=2))
        pods = support.pods(cluster, namespace, count=2)
        fetch = {
            "name": "tfadmit-fetch",
            "image": "tfadmit/transfer:0.1.0",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"exitCode": 2, "reason": "Error"}},
        }
        path = cluster.api.resource("Pod").path(
            namespace=namespace, name=pods[0]["metadata"]["name"]
        )
        status = {"status": {"phase": "Failed", "initContainerStatuses": [fetch]}}
        cluster.api.request("PATCH", f"{path}/status", body=status, content_type=MERGE)
        assert phases.ended(cluster, namespace, "mnist") == "Failed"
        (jobset,) = cluster.list("JobSet", namespace)
        assert jobset["status"].get("restarts", 0) == 0
