"""The webhook configuration by which an API server calls the server under measurement."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from bench import apiserver, burst, running
from harness.api import ApiError
from harness.cluster import Cluster

NAME = "bench.tfadmit.dev"
# As the shipped one. The API server calls webhooks in the order of these names: JobSet's comes
# first, so that ours is called once for each pod.
_CONFIGURATION = "tfadmit"


def call(cluster: Cluster, server: running.Server, *, namespace: str, ca: Path) -> None:
    """Let the API server call this webhook for pods, and wait until it does."""
    authority = base64.b64encode(ca.read_bytes()).decode()
    cluster.apply(_configuration(server.target.port, ca=authority))
    before = apiserver.look(cluster, webhook=NAME).calls.count
    cluster.wait(
        lambda: (
            _probe(cluster, namespace)
            and apiserver.look(cluster, webhook=NAME).calls.count > before
        ),
        what=f"the API server calls {server.name}",
    )


def end(cluster: Cluster) -> None:
    """Let it call none."""
    cluster.delete("MutatingWebhookConfiguration", _CONFIGURATION)


def _probe(cluster: Cluster, namespace: str) -> bool:
    """Make a pod that the webhooks see; whether they admit it does not matter."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": namespace, "labels": burst.LABELS},
        "spec": {"containers": [{"name": "node", "image": "probe"}]},
    }
    try:
        cluster.create(pod, dry_run=True)
    except ApiError as error:
        return error.status != 500
    return True


def _configuration(port: int, *, ca: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    webhook = {
        "name": NAME,
        "clientConfig": {"url": f"https://127.0.0.1:{port}/mutate/pods", "caBundle": ca},
        "rules": [rule],
        "objectSelector": {"matchLabels": burst.LABELS},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "IfNeeded",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": _CONFIGURATION},
        "webhooks": [webhook],
    }
