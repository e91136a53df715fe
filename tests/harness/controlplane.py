"""etcd, the API server and the controller manager, started together or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness import certificates, kubeconfig, loopback
from harness.binaries import Binaries
from harness.process import Process

_HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Face:
    """What an API server is to those who call it."""

    host: str = _HOST
    """The one address on which it listens; with nodes, one that pods can reach."""
    services: str = "10.96.0.0/16"
    names: Sequence[str] = ()
    """Other names and addresses that it is called by."""
    options: Sequence[str] = ()


LOOPBACK = Face()


class ControlPlane:
    """A control plane in one directory; its only user is an administrator."""

    def __init__(self, *, binaries: Binaries, directory: Path, face: Face = LOOPBACK) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._binaries = binaries
        self._directory = directory
        self._face = face
        self.etcd_url = f"http://{_HOST}:{loopback.free_port()}"
        self._undo = ExitStack()
        self._serving = certificates.serving_certificate(
            directory=directory / "serving", host=_HOST, also=[face.host, *face.names]
        )
        self._signing_key = certificates.signing_key(directory / "service-accounts.key")
        self.port = loopback.free_port()
        self.url = f"https://{face.host}:{self.port}"
        self.ca = self._serving.ca
        self.token = secrets.token_hex(16)
        self.processes: list[Process] = []
        self.kubeconfig = kubeconfig.write(
            directory / "admin.kubeconfig",
            kubeconfig.for_token(server=self.url, ca=self.ca.read_bytes(), token=self.token),
        )

    def start(self) -> ControlPlane:
        """Start all three; when one fails, those before it are ended."""
        with ExitStack() as undo:
            for start in (self._etcd, self._api_server, self._controller_manager):
                process = start()
                undo.callback(process.stop)
                self.processes.append(process)
            self._undo = undo.pop_all()
        return self

    def stop(self) -> None:
        """End all three, the last one started first."""
        self._undo.close()
        self.processes.clear()

    def _etcd(self) -> Process:
        peers = f"http://{_HOST}:{loopback.free_port()}"
        command: list[str | Path] = [
            self._binaries.etcd,
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            # Nothing here has to survive a power cut.
            "--unsafe-no-fsync",
        ]
        return self._start("etcd", command, url=f"{self.etcd_url}/health")

    def _api_server(self) -> Process:
        tokens = self._directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        command: list[str | Path] = [
            self._binaries.kube_apiserver,
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={self._face.host}",
            f"--secure-port={self.port}",
            f"--cert-dir={self._directory / 'apiserver'}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--service-account-key-file={self._signing_key}",
            f"--service-account-signing-key-file={self._signing_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            f"--service-cluster-ip-range={self._face.services}",
            "--allow-privileged",
            *self._face.options,
        ]
        return self._start("kube-apiserver", command, url=f"{self.url}/readyz")

    def _controller_manager(self) -> Process:
        port = loopback.free_port()
        command: list[str | Path] = [
            self._binaries.kube_controller_manager,
            f"--kubeconfig={self.kubeconfig}",
            f"--bind-address={_HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self.ca}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            # The default lets a controller create 20 objects a second; large jobs are tested here.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]
        return self._start(
            "kube-controller-manager", command, url=f"https://{_HOST}:{port}/healthz"
        )

    def _start(self, name: str, command: list[str | Path], *, url: str) -> Process:
        headers = {"Authorization": f"Bearer {self.token}"}
        process = Process(name=name, command=command, log=self._directory / f"{name}.log")
        return process.start(ready=lambda: loopback.healthy(url, ca=self.ca, headers=headers))
