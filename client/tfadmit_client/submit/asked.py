"""What submitting asks of a cluster, as a protocol. Pure: who answers is `cluster_objects`."""

from collections.abc import Mapping
from typing import Any, Protocol

from tfadmit_client.cluster import listing
from tfadmit_client.submit.objects import Json
from tfadmit_client.submit.resource import Resource
from tfadmit_webhook import raw


class Cluster(Protocol):
    """Objects of a cluster.

    `flags` are the options by which a command line reaches this very cluster, each after a space.

    Everything raises `listing.StatusError` where the API server refuses, and other
    `listing.ReadError`s where it cannot be asked.
    """

    flags: str

    def get(self, kind: Resource, *, namespace: str, name: str) -> raw.JsonObject:
        """Give an object."""

    def items(self, kind: Resource, *, namespace: str, selector: str) -> list[raw.JsonObject]:
        """Give the objects that have some labels."""

    def create(
        self, kind: Resource, content: Mapping[str, Any], *, namespace: str, dry_run: bool
    ) -> raw.JsonObject:
        """Create an object; a dry run only asks whether it could be."""

    def own(self, kind: Resource, *, namespace: str, name: str, owner: Json) -> None:
        """Add an owner to an object."""

    def delete(self, kind: Resource, *, namespace: str, name: str, uid: str) -> None:
        """Delete this very object."""


def find(cluster: Cluster, kind: Resource, *, namespace: str, name: str) -> raw.JsonObject | None:
    """Give an object, or None when it does not exist."""
    try:
        return cluster.get(kind, namespace=namespace, name=name)
    except listing.StatusError as error:
        if error.status == 404:
            return None
        raise


def is_missing(cluster: Cluster, kind: Resource, *, namespace: str, name: str) -> bool:
    """Whether an object does not exist; False to those who may not look."""
    try:
        return find(cluster, kind, namespace=namespace, name=name) is None
    except listing.StatusError as error:
        if error.status == 403:
            return False
        raise


def no_namespace(cluster: Cluster, namespace: str) -> str:
    """Say that there is no such namespace, and what shows those that there are."""
    shows = f"kubectl get ns{cluster.flags}"
    return f"there is no namespace {namespace}: name one with -n that `{shows}` shows"
