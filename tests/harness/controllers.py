"""JobSet and Kubeflow Trainer as processes beside the API server, with their own webhooks on.

Both would manage their certificates themselves inside a cluster; here they are handed one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness import certificates, loopback, webhooks
from harness.api import Object
from harness.cluster import Cluster, load
from harness.process import Process

_HOST = "127.0.0.1"

# JobSet ships it as a kustomize patch: its pod hooks see pods of JobSets only.
_PODS_OF_JOBSETS = {
    "matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]
}


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """How one controller is started and how its webhooks are reached."""

    name: str
    program: Path
    configuration: Mapping[str, Any]
    webhook_port: int
    health_port: int
    ca: Path
    environ: Mapping[str, str] = field(default_factory=dict)


class Controllers:
    """The two controllers, started together or not at all."""

    def __init__(
        self, *, cluster: Cluster, jobset: Path, trainer: Path, manifests: Path, gang: Path
    ) -> None:
        self._cluster = cluster
        self._jobset = jobset
        self._trainer = trainer
        self._manifests = manifests
        self._gang = gang
        self._undo = ExitStack()
        self.processes: list[Process] = []

    def start(self) -> Controllers:
        """Install the CRDs, start both programs and switch on their webhooks."""
        plans = (self._plan_jobset(), self._plan_trainer())
        # All CRDs before any program: Trainer ends at once when it cannot index a kind, and looks
        # for those of PodGroups only then.
        for crds in (*(self._manifests / plan.name / "crds" for plan in plans), self._gang):
            self._establish(crds)
        with ExitStack() as undo:
            for plan in plans:
                process = self._run(plan)
                undo.callback(process.stop)
                self.processes.append(process)
                self._point_webhooks(plan)
            self._undo = undo.pop_all()
        return self

    def stop(self) -> None:
        """End both."""
        self._undo.close()
        self.processes.clear()

    def _plan_jobset(self) -> _Plan:
        directory = self._cluster.directory / "jobset" / "serving"
        serving = certificates.serving_certificate(directory=directory, host=_HOST)
        port, health = loopback.free_port(), loopback.free_port()
        configuration = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {"host": _HOST, "port": port, "certDir": str(directory)},
            "metrics": {"bindAddress": "0", "certDir": str(directory)},
            "health": {"healthProbeBindAddress": f"{_HOST}:{health}"},
        }
        return _Plan(
            name="jobset",
            program=self._jobset,
            configuration=configuration,
            webhook_port=port,
            health_port=health,
            ca=serving.ca,
        )

    def _plan_trainer(self) -> _Plan:
        # Trainer reads its certificate from a fixed place below the temporary directory.
        scratch = self._cluster.directory / "trainer"
        directory = scratch / "k8s-webhook-server" / "serving-certs"
        serving = certificates.serving_certificate(directory=directory, host=_HOST)
        port, health = loopback.free_port(), loopback.free_port()
        configuration = {
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            "certManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {"host": _HOST, "port": port},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"{_HOST}:{health}"},
            "statusServer": {"port": loopback.free_port()},
        }
        return _Plan(
            name="trainer",
            program=self._trainer,
            configuration=configuration,
            webhook_port=port,
            health_port=health,
            ca=serving.ca,
            environ={"TMPDIR": str(scratch)},
        )

    def _establish(self, crds: Path) -> None:
        for crd in self._cluster.apply(crds):
            name = crd["metadata"]["name"]
            self._cluster.wait(
                partial(self._cluster.get, "CustomResourceDefinition", name),
                until=established,
                what=f"{name} is established",
            )

    def _run(self, plan: _Plan) -> Process:
        directory = self._cluster.directory / plan.name
        file = directory / "config.yaml"
        file.write_text(json.dumps(plan.configuration))
        process = Process(
            name=plan.name,
            command=[plan.program, f"--config={file}"],
            log=directory / f"{plan.name}.log",
            environ={"KUBECONFIG": str(self._cluster.kubeconfig), **plan.environ},
        )
        # Both answer this only once their webhook server listens.
        ready = f"http://{_HOST}:{plan.health_port}/readyz"
        return process.start(ready=lambda: loopback.healthy(ready))

    def _point_webhooks(self, plan: _Plan) -> None:
        ca = plan.ca.read_bytes()
        for shipped in load(self._manifests / plan.name / "webhooks.yaml"):
            local = webhooks.pointed_at(shipped, host=_HOST, port=plan.webhook_port, ca=ca)
            # Both upstreams use kubebuilder's default names, which would overwrite each other.
            local["metadata"]["name"] = f"{plan.name}-{local['metadata']['name']}"
            for webhook in local["webhooks"]:
                if _is_about_pods(webhook):
                    webhook["objectSelector"] = _PODS_OF_JOBSETS
            self._cluster.apply(local)


def _is_about_pods(webhook: Object) -> bool:
    return any("pods" in rule["resources"] for rule in webhook["rules"])


def established(crd: Object) -> bool:
    """Whether the API server serves a kind; at first it says null for its conditions."""
    conditions = crd.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
