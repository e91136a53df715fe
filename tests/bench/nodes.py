"""Nodes that do not exist, on which pods run: kwok plays the kubelets; the scheduler is real.

What a pod does before it runs in a real cluster, from the node's choice to its status, is done on
the API server as there; nothing is pulled and nothing is started. Nobody ends a pod that is deleted
with a grace period.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import programs
from harness import loopback
from harness.cluster import Cluster
from harness.node import programs as node_programs
from harness.node import services
from harness.process import Process

# What a kubelet takes by default.
_PODS_PER_NODE = 110
_ROOM = {"cpu": "64", "memory": "512Gi", "pods": str(_PODS_PER_NODE)}
_MANAGED = "kwok.x-k8s.io/node"
# More than the pods of all bursts, since an address is used again only some time later.
_POD_ADDRESSES = "10.0.0.0/8"
# The defaults let the scheduler bind 50 pods a second; the controller manager has the same options.
_UNHURRIED = ("--kube-api-qps=500", "--kube-api-burst=1000")
# Go templates, as kwok fills them in.
_READY = """\
phase: Running
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
{{ end }}
"""
_RUNNING = """\
phase: Running
startTime: {{ Now | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
{{ range $type := list "Initialized" "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ Now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ Now | Quote }}}}
{{ end }}
"""


@contextmanager
def ready(cluster: Cluster, *, pods: int) -> Iterator[None]:
    """Nodes for twice as many pods, ended afterwards."""
    with ExitStack() as undo:
        scheduler = services.scheduler(
            program=node_programs.kube_scheduler(), cluster=cluster, options=_UNHURRIED
        )
        undo.callback(scheduler.stop)
        undo.callback(_kwok(programs.kwok(), cluster).stop)
        for number in range(needed(pods)):
            cluster.create(_node(f"node-{number}"))
        cluster.wait(
            lambda: [one["metadata"]["name"] for one in cluster.list("Node") if _tainted(one)],
            until=lambda tainted: not tainted,
            what="all nodes take pods",
        )
        yield


def needed(pods: int) -> int:
    """How many nodes it takes: those of the burst before may not be gone yet."""
    return 2 * pods // _PODS_PER_NODE + 1


def _kwok(program: Path, cluster: Cluster) -> Process:
    port = loopback.free_port()
    stages = cluster.directory / "kwok.yaml"
    stages.write_text("\n---\n".join(json.dumps(stage) for stage in _stages()))
    process = Process(
        name="kwok",
        command=[
            program,
            f"--kubeconfig={cluster.kubeconfig}",
            f"--config={stages}",
            f"--manage-nodes-with-annotation-selector={_MANAGED}=fake",
            f"--cidr={_POD_ADDRESSES}",
            "--node-lease-duration-seconds=40",
            f"--server-address=127.0.0.1:{port}",
        ],
        log=cluster.directory / "kwok.log",
    )
    return process.start(ready=lambda: loopback.healthy(f"http://127.0.0.1:{port}/healthz"))


def _stages() -> list[dict[str, Any]]:
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    unready = {"key": ready, "operator": "NotIn", "values": ["True"]}
    alive = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    pending = {"key": ".status.phase", "operator": "In", "values": ["Pending"]}
    # None for the end of a pod: kwok would still be busy with it in the next burst.
    # Without a stage for nodes, kwok looks after no node and so after no pod.
    return [
        _stage("Node", "register", [unready], {"statusTemplate": _READY}),
        _stage("Pod", "run", [alive, pending], {"statusTemplate": _RUNNING}),
    ]


def _stage(
    kind: str, name: str, when: list[dict[str, Any]], then: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": when},
            "next": then,
        },
    }


def _node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_MANAGED: "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "status": {"capacity": _ROOM, "allocatable": _ROOM},
    }


def _tainted(node: dict[str, Any]) -> bool:
    return bool(node["spec"].get("taints"))
