"""Objects of a live cluster, read and written one by one. The paths are `submit.resource`'s."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from tfadmit_client.submit.resource import Resource
from tfadmit_webhook import raw

# Merges owners by their uid, so that two who add one at once both stay.
_MERGE: Final = "application/strategic-merge-patch+json"
# A field that the cluster does not know is a fault, not something to drop.
_STRICT: Final = {"fieldValidation": "Strict", "fieldManager": "tfadmit"}


class Requests(Protocol):
    """What sends requests; `live_wire.Wire` is one."""

    flags: str

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> raw.JsonObject:
        """Send one."""


class Objects:
    """The protocol of `submit.asked` over requests."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.flags = requests.flags

    def get(self, kind: Resource, *, namespace: str, name: str) -> raw.JsonObject:
        """Give an object."""
        return self._requests.request("GET", kind.path(namespace=namespace, name=name))

    def items(self, kind: Resource, *, namespace: str, selector: str) -> list[raw.JsonObject]:
        """Give the objects that have some labels."""
        found = self._requests.request(
            "GET", kind.path(namespace=namespace), query={"labelSelector": selector}
        )
        return [raw.mapping(item) for item in raw.sequence(found.get("items"))]

    def create(
        self, kind: Resource, content: Mapping[str, Any], *, namespace: str, dry_run: bool
    ) -> raw.JsonObject:
        """Create an object; a dry run only asks whether it could be."""
        query = {**_STRICT, **({"dryRun": "All"} if dry_run else {})}
        path = kind.path(namespace=namespace)
        return self._requests.request("POST", path, body=content, query=query)

    def own(self, kind: Resource, *, namespace: str, name: str, owner: Mapping[str, Any]) -> None:
        """Add an owner to an object."""
        self._requests.request(
            "PATCH",
            kind.path(namespace=namespace, name=name),
            body={"metadata": {"ownerReferences": [owner]}},
            query=_STRICT,
            content_type=_MERGE,
        )

    def delete(self, kind: Resource, *, namespace: str, name: str, uid: str) -> None:
        """Delete this very object."""
        self._requests.request(
            "DELETE",
            kind.path(namespace=namespace, name=name),
            body={"preconditions": {"uid": uid}, "propagationPolicy": "Background"},
        )
