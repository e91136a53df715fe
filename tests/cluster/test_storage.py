"""Data and results on a real API server: what it stores, and what Pod Security says to it."""

from __future__ import annotations

import json

import pytest

from builders import make_container, make_replicated_job
from cluster import support

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
