"""tfadmit as its users install it: the shipped manifests, and the real server as a process.

The Deployment is the one thing that differs: its program runs beside the API server, as the
shipped service account, so the shipped RBAC is proven to be enough.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from harness import certificates, loopback, webhooks
from harness.api import Object
from harness.cluster import Cluster, Objects
from harness.process import Process

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "deploy" / "base"
PROGRAM = Path(sys.executable).with_name("tfadmit")

# What places pods and their traffic, which a server outside of the cluster has none of.
_LEFT_OUT = frozenset({"Deployment", "PodDisruptionBudget", "NetworkPolicy"})
_FRAMEWORK = {"trainer.kubeflow.org/framework": "tensorflow"}


class Tfadmit:
    """The installed webhook. ``stop`` and ``start`` end and revive its server on one port."""

    def __init__(
        self, *, cluster: Cluster, server: Process, port: int, metrics_port: int, ca: Path
    ) -> None:
        self._cluster = cluster
        self._server = server
        self.port = port
        self.url = f"https://{cluster.webhook_host}:{port}"
        self.metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"
        self.ca = ca

    @property
    def log(self) -> Path:
        """Everything that the server printed, over all its lives."""
        return self._server.log

    @property
    def running(self) -> bool:
        """Whether the server runs."""
        return self._server.running

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._server.start(ready=lambda: loopback.healthy(f"{self.url}/healthz", ca=self.ca))

    def stop(self) -> None:
        """End the server; the webhook configurations stay."""
        if self.running:  # as Ctrl-C does: nobody waits for it to drain
            os.kill(self._server.pid, signal.SIGINT)
        self._server.stop()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """A while without a server; afterwards it answers on the same port again."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def wait_until_called(self) -> None:
        """Wait until the API server calls both kinds of webhook.

        Reading the configurations back would not prove it: the API server takes them up later.
        """
        self._cluster.wait(
            lambda: self._cluster.tried(_runtime(ready_addresses=True)),
            until=lambda answer: isinstance(answer, dict) and _carries_label(answer),
            what="the API server calls the mutating webhook",
        )
        self._cluster.wait(
            lambda: self._cluster.tried(_runtime(ready_addresses=False)),
            until=lambda answer: isinstance(answer, str) and "publishNotReadyAddresses" in answer,
            what="the API server calls the validating webhook",
        )


@contextmanager
def installed(
    *, cluster: Cluster, settings: str | None = None, base: Path = BASE
) -> Iterator[Tfadmit]:
    """tfadmit in the cluster, called by its API server, with the shipped settings or others.

    At the end all of it is removed but the empty namespace: until a deleted one is gone, the next
    installation would fail.
    """
    rendered = render(cluster, base)
    deployment = _deployment(rendered)
    hooks = [item for item in rendered if item["kind"] in webhooks.KINDS]
    others = [item for item in rendered if item["kind"] not in webhooks.KINDS | _LEFT_OUT]
    file = cluster.directory / "tfadmit" / "settings.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(_shipped_settings(rendered, deployment) if settings is None else settings)
    with ExitStack() as undo:
        _apply(cluster, others, undo=undo)
        tfadmit = _tfadmit(cluster, settings=file, deployment=deployment)
        undo.callback(tfadmit.stop)
        # The server first: a configuration without one would refuse every labelled object.
        tfadmit.start()
        ca = tfadmit.ca.read_bytes()
        local = [
            webhooks.pointed_at(hook, host=cluster.webhook_host, port=tfadmit.port, ca=ca)
            for hook in hooks
        ]
        _apply(cluster, local, undo=undo)
        tfadmit.wait_until_called()
        yield tfadmit


def render(cluster: Cluster, base: Path) -> Objects:
    """The objects of a kustomization, as ``kubectl apply -k`` would send them."""
    rendered = cluster.kubectl("kustomize", str(base))
    if rendered.stderr:
        raise AssertionError(f"kubectl kustomize {base} warns:\n{rendered.stderr}")
    return [item for item in yaml.safe_load_all(rendered.stdout) if item]


def _apply(cluster: Cluster, objects: Objects, *, undo: ExitStack) -> None:
    for item in objects:
        metadata = cluster.apply(item)[0]["metadata"]
        if item["kind"] != "Namespace":
            undo.callback(cluster.delete, item["kind"], metadata["name"], metadata.get("namespace"))


def _deployment(rendered: Objects) -> Object:
    found = [item for item in rendered if item["kind"] == "Deployment"]
    if len(found) != 1:
        raise AssertionError(f"expected one Deployment in the base, found {len(found)}")
    return found[0]


def _shipped_settings(rendered: Objects, deployment: Object) -> str:
    """The settings file as the Deployment mounts it."""
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    mounted = {volume["configMap"]["name"] for volume in volumes if "configMap" in volume}
    for item in rendered:
        if item["kind"] == "ConfigMap" and item["metadata"]["name"] in mounted:
            settings: str = item["data"]["settings.yaml"]
            return settings
    raise AssertionError(f"the base mounts {mounted} and ships no such ConfigMap")


def _tfadmit(cluster: Cluster, *, settings: Path, deployment: Object) -> Tfadmit:
    host = cluster.webhook_host
    serving = certificates.serving_certificate(directory=settings.parent / "serving", host=host)
    port, metrics_port = loopback.free_port(), loopback.free_port()
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    kubeconfig = cluster.kubeconfig_of(account, deployment["metadata"]["namespace"])
    command: list[str | Path] = [PROGRAM, "serve", "--config", settings]
    # A cluster elsewhere reaches this machine by an address that may not be one of its own.
    command += ["--host", host if host == "127.0.0.1" else "0.0.0.0", "--port", str(port)]
    command += ["--tls-cert", serving.certificate, "--tls-key", serving.key]
    command += ["--metrics-port", str(metrics_port), "--kubeconfig", kubeconfig]
    server = Process(name="tfadmit serve", command=command, log=settings.parent / "tfadmit.log")
    return Tfadmit(
        cluster=cluster, server=server, port=port, metrics_port=metrics_port, ca=serving.ca
    )


def _carries_label(runtime: Object) -> bool:
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]
    labels = job["spec"]["template"].get("metadata", {}).get("labels", {})
    return all(labels.get(name) == value for name, value in _FRAMEWORK.items())


def _runtime(*, ready_addresses: bool) -> Object:
    """A runtime with the label only where users put it, right or wrong by one field."""
    pod = {"containers": [{"name": "node", "image": "example.com/none"}]}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": pod}},
        },
    }
    network = {"publishNotReadyAddresses": ready_addresses}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "tfadmit-probe", "labels": _FRAMEWORK},
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {"spec": {"network": network, "replicatedJobs": [job]}},
        },
    }
