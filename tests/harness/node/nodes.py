"""A cluster on whose nodes pods run: control plane, nodes and DNS, all of them or none."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import cache, environment
from harness.cluster import Cluster
from harness.controlplane import Face
from harness.node import agents, leftovers, oci, plan, programs, services, wiring
from harness.node.machine import Machine
from harness.node.runtime import PAUSE_IMAGE, Runtime
from harness.process import Process

_FACE = Face(
    host=plan.HOST,
    services=plan.SERVICES,
    names=(
        plan.API_SERVICE,
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{plan.DNS_DOMAIN}",
    ),
    options=("--kubelet-preferred-address-types=InternalIP",),
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node, and what runs it."""

    plan: plan.Node
    machine: Machine
    runtime: Runtime
    agents: Sequence[Process]


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """What a test holds in its hands beside the cluster."""

    cluster: Cluster
    nodes: Sequence[Node]
    dns: Process

    def take(self, archive: Path) -> None:
        """Take an image's archive in on each node."""
        for node in self.nodes:
            node.runtime.take(archive)


def state() -> Path:
    """Where the nodes keep what they hold: images, containers, volumes. Empty between two runs."""
    return cache.directory() / "nodes"


@contextmanager
def running(
    *, directory: Path, count: int = 2, say: cache.Say = cache.to_stderr
) -> Iterator[Nodes]:
    """A cluster with so many nodes.

    One at a time on a machine: names and addresses are fixed, so that the leftovers of a run that
    was killed are known by name.
    """
    found = programs.find(say=say)
    place = state()
    with cache.lock(place, say=say), ExitStack() as undo:
        leftovers.remove(place)
        undo.callback(leftovers.remove, place)
        undo.enter_context(_reached_without_proxy())
        plans = [plan.Node(number=number) for number in range(1, count + 1)]
        machines = [_machine(node, place=place, found=found, undo=undo) for node in plans]
        for node, machine in zip(plans, machines, strict=True):
            wiring.connect_to_host(node, machine)
        wiring.route_services(plans[0])
        wiring.connect_nodes(list(zip(plans, machines, strict=True)))
        cluster = undo.enter_context(
            environment.own_cluster(directory=directory, face=_FACE, say=say)
        )
        scheduler = services.scheduler(program=found.kube_scheduler, cluster=cluster)
        undo.callback(scheduler.stop)
        dns = services.dns(program=found.coredns, cluster=cluster)
        undo.callback(dns.stop)
        pause = _pause_image(place / "pause.tar", program=found.pause)
        started = [
            _node(node, machine=machine, found=found, cluster=cluster, pause=pause, undo=undo)
            for node, machine in zip(plans, machines, strict=True)
        ]
        _wait_until_ready(cluster, count=count)
        yield Nodes(cluster=cluster, nodes=started, dns=dns)


def _machine(node: plan.Node, *, place: Path, found: programs.Programs, undo: ExitStack) -> Machine:
    machine = Machine(name=node.name, directory=place / node.name, first=found.pause)
    undo.callback(machine.stop)
    return machine.start()


def _node(
    node: plan.Node,
    *,
    machine: Machine,
    found: programs.Programs,
    cluster: Cluster,
    pause: Path,
    undo: ExitStack,
) -> Node:
    runtime = Runtime(node=node, machine=machine, found=found)
    undo.callback(runtime.start().stop)
    runtime.take(pause)
    started = []
    # kube-proxy waits for the node, which the kubelet makes.
    for start in (agents.kubelet, agents.proxy):
        process = start(node, machine=machine, found=found, kubeconfig=cluster.kubeconfig)
        undo.callback(process.stop)
        started.append(process)
    return Node(plan=node, machine=machine, runtime=runtime, agents=started)


def _pause_image(target: Path, *, program: Path) -> Path:
    layer = target.with_suffix(".layer")
    with tarfile.open(layer, "w") as archive:
        archive.add(program, arcname="pause")
    settings = oci.Settings(entrypoint=("/pause",), user="65535:65535")
    oci.write(target, name=PAUSE_IMAGE, layers=[layer], settings=settings)
    return target


def _wait_until_ready(cluster: Cluster, *, count: int) -> None:
    cluster.wait(
        lambda: [node for node in cluster.list("Node") if _is_ready(node)],
        until=lambda ready: len(ready) == count,
        timeout=60,
        what=f"{count} nodes are ready",
    )


def _is_ready(node: dict[str, object]) -> bool:
    status, spec = node.get("status"), node.get("spec")
    conditions = status.get("conditions", []) if isinstance(status, dict) else []
    taints = spec.get("taints") if isinstance(spec, dict) else None
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and not taints


@contextmanager
def _reached_without_proxy() -> Iterator[None]:
    """Keep kubectl and the controllers from asking a proxy of the user's for our addresses."""
    before = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    for name, value in before.items():
        os.environ[name] = ",".join([*([value] if value else []), plan.EVERYTHING])
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
