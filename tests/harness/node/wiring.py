"""The cables: one from the tests' machine to each node, one between each two nodes.

Routes and no bridge, so that every packet passes the node's own rules, as between real machines. On
the tests' machine it is one interface for each node. They go with the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.node import plan
from harness.node.machine import Machine, run

_IP = Path("/usr/sbin/ip")


def connect_to_host(node: plan.Node, machine: Machine) -> None:
    """Let the tests' machine and a node, with its pods, reach each other."""
    outer = node.interface
    make = ["link", "add", outer, "type", "veth", "peer", "name", "eth0"]
    run([_IP, *make, "netns", str(machine.pid)])
    run([_IP, "address", "add", plan.HOST, "peer", node.address, "dev", outer])
    run([_IP, "link", "set", outer, "up"])
    run([_IP, "route", "add", node.pods, "via", node.address, "dev", outer])
    machine.run(_IP, "address", "add", node.address, "peer", plan.HOST, "dev", "eth0")
    machine.run(_IP, "link", "set", "eth0", "up")
    # To nowhere beyond the tests' machine, which forwards nothing; kube-proxy's rules see what is
    # sent to a service only if there is a route for it.
    machine.run(_IP, "route", "add", "default", "via", plan.HOST, "dev", "eth0")


def route_services(node: plan.Node) -> None:
    """Let the tests' machine, where the API server is, reach services: through this node."""
    run([_IP, "route", "add", plan.SERVICES, "via", node.address, "dev", node.interface])


def connect_nodes(nodes: Sequence[tuple[plan.Node, Machine]]) -> None:
    """Let each two nodes and their pods reach each other without the tests' machine."""
    for index, (left, left_machine) in enumerate(nodes):
        for right, right_machine in nodes[index + 1 :]:
            _connect(left, left_machine, right, right_machine)


def _connect(
    left: plan.Node, left_machine: Machine, right: plan.Node, right_machine: Machine
) -> None:
    there, back = f"to-{right.name}", f"to-{left.name}"
    peer = ["peer", "name", back, "netns", str(right_machine.pid)]
    # Made on the left machine; the id is one of the tests' machine, so it is made from there.
    make: list[str | Path] = [
        _IP,
        "link",
        "add",
        there,
        "netns",
        str(left_machine.pid),
        "type",
        "veth",
        *peer,
    ]
    run(make)
    for machine, device, own, other in (
        (left_machine, there, left, right),
        (right_machine, back, right, left),
    ):
        machine.run(_IP, "address", "add", own.address, "peer", other.address, "dev", device)
        machine.run(_IP, "link", "set", device, "up")
        machine.run(_IP, "route", "add", other.pods, "via", other.address, "dev", device)
