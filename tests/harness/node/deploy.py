"""tfadmit installed in a cluster as its users do it: the commands of deploy/README.md."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import tools
from harness.api import ApiError
from harness.cluster import Cluster

NAMESPACE = "tfadmit-system"
DEPLOYMENT = "tfadmit-webhook"
CERTIFICATES = "tfadmit-certs"
LEAF_SECRET = "tfadmit-webhook-tls"
OVERLAY = tools.ROOT / "deploy" / "overlays" / "self-managed"
RUNTIME = tools.ROOT / "deploy" / "runtimes" / "tensorflow-distributed.yaml"
PROGRAM = Path(sys.executable).with_name("tfadmit")

_KINDS = "mutatingwebhookconfiguration,validatingwebhookconfiguration"


@contextmanager
def installed(cluster: Cluster) -> Iterator[None]:
    """The webhook with certificates of its own, and the shipped runtime; removed afterwards."""
    try:
        cluster.kubectl("apply", "-k", str(OVERLAY))
        wait_until_available(cluster, seconds=240)
        # The API server takes a new caBundle up a moment later than it can be read.
        cluster.wait(
            lambda: _applied(cluster),
            timeout=60,
            pause=0.5,
            what="the webhook answers for the shipped runtime",
        )
        yield
    finally:
        # The configurations first, or labelled objects are refused in between.
        gone = ("--ignore-not-found", "--wait=false")
        cluster.kubectl("delete", _KINDS, "tfadmit", *gone)
        cluster.kubectl("delete", "-f", str(RUNTIME), *gone)
        cluster.kubectl("delete", "-k", str(OVERLAY), *gone)


def wait_until_available(cluster: Cluster, *, seconds: int = 120) -> None:
    """Wait until the last rollouts of the server and of its certificates are complete."""
    for name in (CERTIFICATES, DEPLOYMENT):
        status = ("rollout", "status", f"deployment/{name}", f"--timeout={seconds}s")
        cluster.kubectl(*status, "--namespace", NAMESPACE, timeout=seconds + 10)


def tfadmit(cluster: Cluster, *arguments: str, timeout: float = 300) -> str:
    """Run the command line as the administrator and return what it prints; a failure shows it."""
    done = subprocess.run(
        [str(PROGRAM), *arguments, "--kubeconfig", str(cluster.kubeconfig)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=dict(os.environ),
    )
    if done.returncode:
        raise AssertionError(f"tfadmit {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


def _applied(cluster: Cluster) -> bool:
    try:
        cluster.apply(RUNTIME)
    except ApiError:
        return False
    return True
