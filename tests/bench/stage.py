"""Where webhooks are called by a real API server: a cluster with nodes, and both webhooks."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import against_go, nodes, programs
from harness import certificates, environment
from harness.cluster import Cluster


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What is up until its stack is closed."""

    cluster: Cluster
    both: against_go.Both
    """Not started yet."""

    ca: Path
    """By which the API server trusts them."""


def enter(stack: ExitStack, directory: Path, *, pods: int, python: Path | None = None) -> Stage:
    """Start a cluster with nodes for so many pods; `python` runs the product."""
    issued = certificates.serving_certificate(directory=directory / "serving", host="127.0.0.1")
    cluster = stack.enter_context(environment.own_cluster(directory=directory / "cluster"))
    stack.enter_context(nodes.ready(cluster, pods=pods))
    both = against_go.Both(
        anchor=programs.build().anchor,
        python=python or programs.python(),
        issued=issued,
        kubeconfig=cluster.kubeconfig,
    )
    return Stage(cluster=cluster, both=both, ca=issued.ca)
