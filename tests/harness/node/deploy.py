"""tfadmit installed in a cluster as its users do it: the commands of deploy/README.md."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

from harness import certificates, tools
from harness.cluster import Cluster

NAMESPACE = "tfadmit-system"
DEPLOYMENT = "tfadmit-webhook"
HOST = f"{DEPLOYMENT}.{NAMESPACE}.svc"
BASE = tools.ROOT / "deploy" / "base"
RUNTIME = tools.ROOT / "deploy" / "runtimes" / "tensorflow-distributed.yaml"

_KINDS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


@contextmanager
def installed(cluster: Cluster) -> Iterator[None]:
    """The webhook with a handed-over certificate, and the shipped runtime; removed afterwards."""
    try:
        _install(cluster)
        yield
    finally:
        # The configurations first, or labelled objects are refused in between.
        gone = ("--ignore-not-found", "--wait=false")
        cluster.kubectl("delete", ",".join(_KINDS), "tfadmit", *gone)
        cluster.kubectl("delete", "-f", str(RUNTIME), *gone)
        cluster.kubectl("delete", "-k", str(BASE), *gone)


def _install(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", str(BASE / "namespace.yaml"))
    directory = cluster.directory / "tfadmit-tls"
    serving = certificates.serving_certificate(directory=directory, host=HOST)
    files = [f"--from-file=tls.crt={serving.certificate}", f"--from-file=tls.key={serving.key}"]
    in_namespace = ("--namespace", NAMESPACE)
    cluster.kubectl("create", "secret", "generic", f"{DEPLOYMENT}-tls", *files, *in_namespace)
    cluster.kubectl("apply", "-k", str(BASE), "-l", "app.kubernetes.io/component=server")
    wait_until_available(cluster)
    cluster.kubectl("apply", "-k", str(BASE), "-l", "app.kubernetes.io/component=admission")
    for kind in _KINDS:
        _trust(cluster, kind, ca=serving.ca.read_bytes())
    # A refusal would come from the webhook; that it is called at all is a test's to prove.
    cluster.kubectl("apply", "-f", str(RUNTIME))


def wait_until_available(cluster: Cluster, *, seconds: int = 120) -> None:
    """Wait until the last rollout is complete."""
    status = ("rollout", "status", f"deployment/{DEPLOYMENT}", f"--timeout={seconds}s")
    cluster.kubectl(*status, "--namespace", NAMESPACE, timeout=seconds + 10)


def _trust(cluster: Cluster, kind: str, *, ca: bytes) -> None:
    bundle = base64.b64encode(ca).decode()
    hooks = cluster.get(kind, "tfadmit")["webhooks"]
    patch = {
        "webhooks": [{"name": hook["name"], "clientConfig": {"caBundle": bundle}} for hook in hooks]
    }
    cluster.kubectl("patch", kind, "tfadmit", "--patch", json.dumps(patch))
