"""Names and addresses of the nodes: values only.

198.18.0.0/15 is set aside for benchmarks of networks (RFC 2544): hardly any machine has a route to
it.
"""

from __future__ import annotations

from dataclasses import dataclass

# What the API server, CoreDNS and the tests' own servers have on the tests' machine.
HOST = "198.18.255.1"
SERVICES = "198.19.0.0/16"
# The first address of the range is the API server's own service, by rule of Kubernetes.
API_SERVICE = "198.19.0.1"
DNS_SERVICE = "198.19.0.10"
DNS_DOMAIN = "cluster.local"
EVERYTHING = "198.18.0.0/15"

# All interfaces and control groups of ours on the machine start with it.
PREFIX = "tfadmit"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node, by its number from 1."""

    number: int

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        """Under which the API server and the other nodes reach it."""
        return f"198.18.255.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The addresses of its pods."""
        return f"198.18.{self.number}.0/24"

    @property
    def interface(self) -> str:
        """The machine's end of the cable to this node."""
        return f"{PREFIX}{self.number}"

    @property
    def control_group(self) -> str:
        """Under which all its containers are."""
        return f"/{PREFIX}-{self.name}"
