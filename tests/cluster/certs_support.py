"""An installation of the certificates alone: real controllers on the real API server.

Each has names of its own, and its webhooks select nothing, so that no other test is disturbed.
"""

import base64
import json
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from harness import loopback
from harness.api import ApiError
from harness.cluster import Cluster
from harness.process import Process
from tfadmit_certs import bundle, hooks, judge, names, state

ROOT = Path(__file__).parents[2]
KINDS: tuple[hooks.Kind, ...] = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
PROGRAM = [sys.executable, "-m", "tfadmit_client", "certs"]
# Settling is a minute as shipped; here it is one second, and rotations take that long.
SETTINGS = "certificates: {settle: 1s}\n"


class Controller(Process):
    """`tfadmit certs run` and its plain port."""

    metrics = ""


class Installation:
    """A namespace with the shipped rights, two configurations, and controllers on demand."""

    def __init__(self, cluster: Cluster, namespace: str, *, settings: str = SETTINGS) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.names = names.Names(namespace=namespace, configuration=f"tfadmit-{namespace}")
        self.directory = cluster.directory / f"certs-{namespace}"
        self.directory.mkdir()
        self.settings = self.directory / "settings.yaml"
        self.settings.write_text(settings)
        self._controllers: list[Controller] = []
        cluster.apply(self._rights())
        self.kubeconfig = cluster.kubeconfig_of("tfadmit-certs", namespace)

    # The objects.

    def manifest(self) -> str:
        """The shipped webhooks, under the names of this installation, selecting nothing."""
        text = (ROOT / "deploy/base/webhooks.yaml").read_text()
        documents = [item for item in yaml.safe_load_all(text) if item]
        for item in documents:
            item["metadata"]["name"] = self.names.configuration
            for hook in item["webhooks"]:
                hook["clientConfig"]["service"]["namespace"] = self.namespace
                hook["objectSelector"] = {"matchLabels": {"tfadmit.dev/test": self.namespace}}
        return yaml.safe_dump_all(documents)

    def configure(self, *options: str) -> None:
        """`kubectl apply` of the webhooks, as users do."""
        self.cluster.kubectl("apply", *options, "-f", "-", input=self.manifest())

    def configurations(self):
        for kind in KINDS:
            try:
                found = self.cluster.get(kind, self.names.configuration)
            except ApiError as error:
                if error.status != 404:
                    raise
                continue
            yield hooks.read(found, kind=kind, names=self.names)

    def secret(self, which):
        try:
            return self.cluster.get("Secret", self.names.secret(which), self.namespace)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def view(self):
        # The leaf first: what is published when it is read must trust it, not what was before.
        ca, leaf = self.secret("ca"), self.secret("leaf")
        return state.View(
            authority=ca and state.read_authority(ca, label=self.names.label("ca")),
            leaf=leaf and state.read_leaf(leaf, label=self.names.label("leaf")),
            configurations=tuple(self.configurations()),
        )

    def put(self, which, **data: bytes) -> None:
        """Write keys of a Secret, whatever is in it (`ca_crt` is ca.crt); None removes one."""
        encoded = {
            name.replace("_", "."): None if value is None else base64.b64encode(value).decode()
            for name, value in data.items()
        }
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{self.names.secret(which)}"
        body = {"data": encoded}
        self.cluster.api.request(
            "PATCH", path, body=body, content_type="application/merge-patch+json"
        )

    def set_bundles(self, pem: bytes | None) -> None:
        """Somebody else writes the caBundle of every webhook."""
        for kind in KINDS:
            item = self.cluster.get(kind, self.names.configuration)
            for hook in item["webhooks"]:
                hook["clientConfig"]["caBundle"] = pem and bundle.ca_bundle(pem)
            path = self.cluster.api.resource(kind).path(name=self.names.configuration)
            self.cluster.api.request("PUT", path, body=item)

    # The controllers.

    def controller(self, identity: str = "one", *, program=None, environ=None) -> Controller:
        """A controller process as the shipped service account, not started yet."""
        port = loopback.free_port()
        command = [*(program or [*PROGRAM, "run"]), "--kubeconfig", self.kubeconfig]
        command += ["--config", self.settings, "--identity", identity]
        command += ["--metrics-port", str(port), *self.options()]
        process = Controller(
            name=f"tfadmit certs run ({identity})",
            command=command,
            log=self.directory / f"{identity}.log",
            environ=environ,
        )
        process.metrics = f"http://127.0.0.1:{port}"
        self._controllers.append(process)
        return process

    def start(self, identity: str = "one") -> Controller:
        process = self.controller(identity)
        process.start(ready=lambda: loopback.healthy(f"{process.metrics}/readyz"))
        return process

    def options(self) -> list[str]:
        return ["--namespace", self.namespace, "--configuration", self.names.configuration]

    def run(self, *words: str):
        """A command of `tfadmit certs` as the administrator."""
        command = [*PROGRAM, *words, "--kubeconfig", str(self.cluster.kubeconfig), *self.options()]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def log(self, identity: str = "one") -> list[dict[str, Any]]:
        """The lines of a controller's log."""
        text = (self.directory / f"{identity}.log").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def close(self) -> None:
        for process in self._controllers:
            process.stop()
        for kind in (*KINDS, "ClusterRole", "ClusterRoleBinding"):
            self.cluster.delete(kind, self.names.configuration)

    # What must hold.

    def trouble(self) -> str:
        """Why not all is right; empty when it is."""
        view = self.view()
        if view.authority is None or view.leaf is None:
            return "a Secret is missing"
        if view.authority.current.trouble or view.leaf.trouble:
            return str(view.authority.current.trouble or view.leaf.trouble)
        if (phase := judge.phase(view)) not in ("steady", "retire"):
            return f"a rotation is running: {phase}"
        return self.untrusted(view) or self.unpublished(view)

    def unpublished(self, view) -> str:
        wanted = sum(len(item.lacks(view.authority.pem)) for item in view.configurations)
        there = len(view.configurations)
        if any(item.owned is not None for item in view.configurations):
            return "a configuration is still owned"
        return f"{wanted} wrong caBundles in {there} of 2" if wanted or there != 2 else ""

    def untrusted(self, view=None) -> str:
        """Which webhook does not trust the leaf; what servers show must never be refused."""
        view = view or self.view()
        leaf = bundle.render([view.leaf.certificate])
        for configuration in view.configurations:
            for hook in configuration.hooks:
                if not bundle.parse_readable(hook.trusts or b""):
                    return f"{hook.name} has no caBundle"
                found = bundle.chain_problems(leaf=leaf, ca=hook.trusts, now=utc_now())
                if found:
                    return f"{hook.name}: {found}"
        return ""

    def wait_until_right(self, *, timeout: float = 15) -> float:
        """Seconds until all was right."""
        began = time.monotonic()
        self.cluster.wait(
            self.trouble, until=lambda found: not found, timeout=timeout, what="right certificates"
        )
        return time.monotonic() - began

    def _rights(self):
        """The shipped rights, for this namespace; those of the cluster under another name."""
        text = (ROOT / "deploy/overlays/self-managed/rbac.yaml").read_text()
        for item in yaml.safe_load_all(text):
            metadata = item["metadata"]
            if "namespace" in metadata:
                metadata["namespace"] = self.namespace
            else:
                metadata["name"] = self.names.configuration
                if item["kind"] == "ClusterRoleBinding":
                    item["roleRef"]["name"] = self.names.configuration
            for rule in item.get("rules", []):
                if rule.get("resourceNames") == ["tfadmit"]:
                    rule["resourceNames"] = [self.names.configuration]
            for subject in item.get("subjects", []):
                subject["namespace"] = self.namespace
            yield item


def create(made, which, data):
    made.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": made.names.secret(which), "namespace": made.namespace},
            "type": "Opaque" if which == "ca" else "kubernetes.io/tls",
            "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
        }
    )


def utc_now():
    return datetime.now(timezone.utc)
