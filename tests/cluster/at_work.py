"""An overlay at work: its programs as shipped, with the arguments and rights of their Deployments.

Only what places pods is missing: the programs run beside the API server, each as its service
account. The Service leads nowhere here, so no review comes; what a caBundle is worth is tried by a
handshake under the name that the API server would ask for.
"""

import base64
import contextlib
import functools
import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from cluster import support
from harness import install, loopback
from harness.cluster import Cluster
from harness.process import Process

NAMESPACE = "tfadmit-system"
NAME = "tfadmit-webhook.tfadmit-system.svc"
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# What places pods and their traffic.
_LEFT_OUT = {"Deployment", "PodDisruptionBudget", "NetworkPolicy"}
# The server drains for 10 s at least.
_GRACE_SECONDS = 30


class Program:
    """A Deployment as a process; `files` stand in for what a pod would mount."""

    def __init__(
        self, cluster: Cluster, deployment: support.Json, *, files: Mapping[str, Path], log: Path
    ) -> None:
        name = deployment["metadata"]["name"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        self.port, self.metrics_port = loopback.free_port(), loopback.free_port()
        places: dict[str, list[str]] = {path: [str(file)] for path, file in files.items()}
        places["0.0.0.0"] = ["127.0.0.1"]
        places["10250"], places["8080"] = [str(self.port)], [str(self.metrics_port)]
        places["--in-cluster"] = ["--kubeconfig", str(cluster.kubeconfig_of(name, NAMESPACE))]
        arguments = [part for one in container["args"] for part in places.get(one, [one])]
        self.process = Process(name=name, command=[install.PROGRAM, *arguments], log=log)

    def answers(self, path: str) -> bool:
        return loopback.healthy(f"http://127.0.0.1:{self.metrics_port}{path}")

    def start(self) -> None:
        self.process.start(ready=lambda: self.answers("/healthz"))


def rendered(cluster: Cluster, overlay: str) -> list[support.Json]:
    return install.render(cluster, support.ROOT / "deploy/overlays" / overlay)


@contextlib.contextmanager
def running(
    cluster: Cluster,
    objects: list[support.Json],
    *,
    directory: Path,
    files: Mapping[str, Path] | None = None,
    settings: str = "",
) -> Iterator[dict[str, Program]]:
    """The programs of an overlay by name; `settings` replace whole sections of the shipped ones."""
    (shipped,) = (i["data"]["settings.yaml"] for i in objects if i["kind"] == "ConfigMap")
    file = directory / "settings.yaml"
    changed = {**yaml.safe_load(shipped), **(yaml.safe_load(settings) or {})}
    file.write_text(yaml.safe_dump(changed))
    mounted = {"/etc/tfadmit/settings.yaml": file, **(files or {})}
    with contextlib.ExitStack() as undo:
        for item in (item for item in objects if item["kind"] not in _LEFT_OUT):
            metadata = cluster.apply(item)[0]["metadata"]
            if item["kind"] != "Namespace":
                where = metadata.get("namespace")
                undo.callback(cluster.delete, item["kind"], metadata["name"], where)
        found: dict[str, Program] = {}
        for item in (item for item in objects if item["kind"] == "Deployment"):
            name = item["metadata"]["name"]
            log = directory / f"{name}.log"
            found[name] = Program(cluster, item, files=mounted, log=log)
            undo.callback(found[name].process.stop, grace=_GRACE_SECONDS)
            found[name].start()
        yield found


def wait_until_ready(cluster: Cluster, programs: Mapping[str, Program]) -> None:
    for name, program in programs.items():
        look = functools.partial(program.answers, "/readyz")
        cluster.wait(look, what=f"{name} is ready")


def bundles(cluster: Cluster) -> dict[str, bytes]:
    """The caBundle of each webhook."""
    hooks = [hook for kind in HOOKS for hook in cluster.get(kind, "tfadmit")["webhooks"]]
    return {h["name"]: base64.b64decode(h["clientConfig"].get("caBundle", "")) for h in hooks}


def shown(port: int, bundle: bytes) -> bytes:
    """The certificate that the server shows; one that the API server would not verify raises."""
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""
