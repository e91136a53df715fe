"""The cluster that the tests run on: our own, or the one that the user names.

``TFADMIT_TEST_KUBECONFIG``    a kubeconfig of a cluster with JobSet and Trainer installed
``TFADMIT_TEST_WEBHOOK_HOST``  the address under which that cluster reaches this machine
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness import binaries, cache, gang, loopback, tools
from harness.api import Api
from harness.cluster import Cluster
from harness.controllers import Controllers
from harness.controlplane import LOOPBACK, ControlPlane, Face
from harness.process import Process

NAMED = "TFADMIT_TEST_KUBECONFIG"
WEBHOOK_HOST = "TFADMIT_TEST_WEBHOOK_HOST"

_NEEDED = {"JobSet": "the JobSet controller", "TrainJob": "Kubeflow Trainer v2"}


class NotInstalledError(RuntimeError):
    """The cluster that the user names lacks something."""


@contextmanager
def running(
    *, directory: Path, environ: Mapping[str, str] = os.environ, say: cache.Say = cache.to_stderr
) -> Iterator[Cluster]:
    """The cluster, ended afterwards when it is our own."""
    named = environ.get(NAMED)
    if named:
        host = environ.get(WEBHOOK_HOST, "127.0.0.1")
        with named_cluster(
            kubeconfig=Path(named), webhook_host=host, directory=directory, say=say
        ) as cluster:
            yield cluster
    else:
        with own_cluster(directory=directory, say=say) as cluster:
            yield cluster


@contextmanager
def own_cluster(
    *, directory: Path, face: Face = LOOPBACK, say: cache.Say = cache.to_stderr
) -> Iterator[Cluster]:
    """A control plane with JobSet and Trainer, as processes of this machine."""
    found = binaries.find(say=say)
    plane = ControlPlane(binaries=found, directory=directory / "controlplane", face=face)
    api = Api(url=plane.url, ca=plane.ca, token=plane.token)
    cluster = Cluster(
        api=api,
        kubectl=found.kubectl,
        kubeconfig=plane.kubeconfig,
        directory=directory,
        etcd=plane.etcd_url,
    )
    controllers = Controllers(
        cluster=cluster,
        jobset=found.jobset,
        trainer=found.trainer,
        manifests=found.manifests,
        gang=gang.crds(say=say),
    )
    try:
        plane.start()
        controllers.start()
        yield cluster
    finally:
        controllers.stop()
        api.close()
        plane.stop()


@contextmanager
def named_cluster(
    *, kubeconfig: Path, webhook_host: str, directory: Path, say: cache.Say = cache.to_stderr
) -> Iterator[Cluster]:
    """A cluster that somebody else runs; `kubectl proxy` brings whatever log-in it needs."""
    directory.mkdir(parents=True, exist_ok=True)
    kubectl = tools.kubectl(minor=binaries.KUBERNETES[1], say=say)
    port = loopback.free_port()
    url = f"http://127.0.0.1:{port}"
    proxy = Process(
        name="kubectl proxy",
        command=[kubectl, f"--kubeconfig={kubeconfig}", "proxy", f"--port={port}"],
        log=directory / "kubectl-proxy.log",
    )
    api = Api(url=url)
    try:
        proxy.start(ready=lambda: loopback.healthy(f"{url}/readyz"))
        missing = [text for kind, text in _NEEDED.items() if not api.knows(kind)]
        if missing:
            raise NotInstalledError(f"the cluster of {kubeconfig} lacks {' and '.join(missing)}")
        yield Cluster(
            api=api,
            kubectl=kubectl,
            kubeconfig=kubeconfig,
            directory=directory,
            webhook_host=webhook_host,
        )
    finally:
        api.close()
        proxy.stop()
