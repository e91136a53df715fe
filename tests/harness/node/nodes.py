"""A cluster on whose nodes pods run: control plane, nodes and DNS, all of them or none."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import cache, environment, tools
from harness.cluster import Cluster
from harness.controlplane import Face
from harness.node import agents, build, images, leftovers, plan, programs, services, store, wiring
from harness.node.machine import Machine, run
from harness.node.runtime import Runtime
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


# With the kubeconfig of a cluster: the command that takes the name of an OCI archive.
LOADER = "TFADMIT_TEST_LOAD_IMAGES"


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
    names: Sequence[str]
    """The nodes on which pods can run, in a fixed order."""
    own: Sequence[Node] = ()
    """What runs them; nothing on a cluster that the user names."""
    dns: services.Dns | None = None


def state() -> Path:
    """Where the nodes keep what they hold: images, containers, volumes. Empty between two runs."""
    return cache.directory() / "nodes"


@contextmanager
def running(
    *,
    directory: Path,
    recipes: Sequence[images.Recipe],
    environ: Mapping[str, str] = os.environ,
    say: cache.Say = cache.to_stderr,
) -> Iterator[Nodes]:
    """A cluster whose nodes have these images: our own two nodes, or what the user names."""
    named = environ.get(environment.NAMED)
    if named:
        loader = environ.get(LOADER)
        with _named(
            Path(named), directory=directory, recipes=recipes, loader=loader, say=say
        ) as nodes:
            yield nodes
    else:
        with own(directory=directory, recipes=recipes, say=say) as nodes:
            yield nodes


@contextmanager
def own(
    *,
    directory: Path,
    recipes: Sequence[images.Recipe],
    count: int = 2,
    say: cache.Say = cache.to_stderr,
) -> Iterator[Nodes]:
    """A cluster with so many nodes of this machine.

    One at a time on a machine: names and addresses are fixed, so that the leftovers of a run that
    was killed are known by name.
    """
    found = programs.find(say=say)
    place = state()
    with cache.lock(place, say=say), ExitStack() as undo:
        leftovers.remove(place)
        undo.callback(leftovers.remove, place)
        # Each change of our code makes new layers of some hundred megabytes, and a store of three
        # gigabytes: the one before is kept for whoever goes back and forth between two.
        cache.forget(build.kept(), unused_days=3, now=time.time())
        cache.forget(store.kept(), unused_days=3, now=time.time(), most=1)
        filled = store.ready(recipes, found=found, place=place, say=say)
        undo.enter_context(_reached_without_proxy())
        plans = [plan.Node(number=number) for number in range(1, count + 1)]
        machines = [_machine(node, place=place, found=found, undo=undo) for node in plans]
        pairs = list(zip(plans, machines, strict=True))
        _connect(pairs)
        cluster = undo.enter_context(
            environment.own_cluster(directory=directory, face=_FACE, say=say)
        )
        dns = _services(cluster, found=found, undo=undo)
        started = []
        for node, machine in pairs:
            store.give(filled, machine)
            started.append(_node(node, machine=machine, found=found, cluster=cluster, undo=undo))
        names = _ready(cluster, count=count)
        yield Nodes(cluster=cluster, names=names, own=started, dns=dns)


@contextmanager
def _named(
    kubeconfig: Path,
    *,
    directory: Path,
    recipes: Sequence[images.Recipe],
    loader: str | None,
    say: cache.Say,
) -> Iterator[Nodes]:
    if not loader:
        raise tools.UnavailableError(
            f"the nodes of {kubeconfig} need the images of the tests: set {LOADER} to the command"
            ' that loads an archive, such as "kind load image-archive"'
        )
    for recipe in recipes:
        archive = directory / "image.tar"
        images.write_archive(archive, name=recipe.name, image=recipe.build(say))
        run([*shlex.split(loader), archive], timeout=600)
    with environment.named_cluster(
        kubeconfig=kubeconfig, webhook_host="127.0.0.1", directory=directory, say=say
    ) as cluster:
        yield Nodes(cluster=cluster, names=_ready(cluster, count=1))


def _connect(pairs: Sequence[tuple[plan.Node, Machine]]) -> None:
    for node, machine in pairs:
        wiring.connect_to_host(node, machine)
    first, _ = pairs[0]
    wiring.route_services(first)
    wiring.connect_nodes(pairs)


def _services(cluster: Cluster, *, found: programs.Programs, undo: ExitStack) -> services.Dns:
    scheduler = services.scheduler(program=found.kube_scheduler, cluster=cluster)
    undo.callback(scheduler.stop)
    dns = services.dns(program=found.coredns, cluster=cluster)
    undo.callback(dns.stop)
    return dns


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
    undo: ExitStack,
) -> Node:
    runtime = Runtime(node=node, machine=machine, found=found)
    undo.callback(runtime.start().stop)
    started = []
    # kube-proxy waits for the node, which the kubelet makes.
    for start in (agents.kubelet, agents.proxy):
        process = start(node, machine=machine, found=found, kubeconfig=cluster.kubeconfig)
        undo.callback(process.stop)
        started.append(process)
    return Node(plan=node, machine=machine, runtime=runtime, agents=started)


def _ready(cluster: Cluster, *, count: int) -> list[str]:
    ready = cluster.wait(
        lambda: [node for node in cluster.list("Node") if _is_ready(node)],
        until=lambda found: len(found) >= count,
        timeout=60,
        what=f"{count} nodes are ready",
    )
    return sorted(node["metadata"]["name"] for node in ready)


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
