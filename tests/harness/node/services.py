"""What a cluster with nodes has beside them: the scheduler and the DNS, on the tests' machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import loopback
from harness.api import Object
from harness.cluster import Cluster
from harness.node import plan
from harness.process import Process

# As kubeadm writes it, but that nothing beyond the cluster is asked.
_COREFILE = """\
.:{port} {{
    bind {host}
    errors
    health {host}:{health}
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    cache 30 {{
        disable success {domain}
        disable denial {domain}
    }}
    loop
}}
"""


def scheduler(*, program: Path, cluster: Cluster, options: Sequence[str] = ()) -> Process:
    """kube-scheduler, started."""
    port = loopback.free_port()
    serving = cluster.directory / "controlplane" / "serving"
    process = Process(
        name="kube-scheduler",
        command=[
            program,
            f"--kubeconfig={cluster.kubeconfig}",
            f"--authentication-kubeconfig={cluster.kubeconfig}",
            f"--authorization-kubeconfig={cluster.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={serving / 'tls.crt'}",
            f"--tls-private-key-file={serving / 'tls.key'}",
            "--leader-elect=false",
            *options,
        ],
        log=cluster.directory / "kube-scheduler.log",
    )
    url = f"https://127.0.0.1:{port}/healthz"
    return process.start(ready=lambda: loopback.healthy(url, ca=serving / "ca.crt"))


class Dns:
    """CoreDNS, which a test can take away for a while."""

    def __init__(self, process: Process, *, health: str) -> None:
        self._process = process
        self._health = health

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process.start(ready=lambda: loopback.healthy(self._health))

    def stop(self) -> None:
        """End it."""
        self._process.stop()

    @contextmanager
    def down(self) -> Iterator[None]:
        """A while without it."""
        self.stop()
        try:
            yield
        finally:
            self.start()


def dns(*, program: Path, cluster: Cluster) -> Dns:
    """CoreDNS, started, and the service under which pods ask it."""
    port, health = loopback.free_port(), loopback.free_port()
    corefile = cluster.directory / "Corefile"
    corefile.write_text(
        _COREFILE.format(
            port=port,
            health=health,
            host=plan.HOST,
            domain=plan.DNS_DOMAIN,
            kubeconfig=cluster.kubeconfig,
        )
    )
    process = Process(
        name="CoreDNS",
        command=[program, "-conf", corefile],
        log=cluster.directory / "coredns.log",
    )
    server = Dns(process, health=f"http://{plan.HOST}:{health}/health")
    server.start()
    cluster.apply(_dns_service(port))
    return server


def _dns_service(port: int) -> list[Object]:
    ports = [("dns", "UDP"), ("dns-tcp", "TCP")]
    metadata = {"name": "kube-dns", "namespace": "kube-system"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        # No selector: the server is no pod.
        "spec": {
            "clusterIP": plan.DNS_SERVICE,
            "ports": [{"name": name, "protocol": kind, "port": 53} for name, kind in ports],
        },
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [plan.HOST]}],
        "ports": [{"name": name, "protocol": kind, "port": port} for name, kind in ports],
    }
    return [service, endpoints]
