"""Webhook configurations as the certificates see them: which webhooks are ours, what they trust.

Here: a configuration's object to `Configuration`, and the body of the server-side apply that sets
caBundle and nothing else. Not here: talking to the API server (`secret`). No I/O.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tfadmit_certs import bundle
from tfadmit_certs.names import MANAGER, Names

Kind = Literal["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
KINDS: Final[tuple[Kind, ...]] = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
API_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, kw_only=True)
class Hook:
    """A webhook of ours; `trusts` is its caBundle, None when it has none."""

    name: str
    trusts: bytes | None


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A configuration that exists, with those of its webhooks that call our server."""

    kind: Kind
    name: str
    uid: str
    version: str
    hooks: tuple[Hook, ...]
    owned: int | None = None
    """Which entry of managedFields says that we own something here; None when none does."""

    def lacks(self, pem: bytes) -> tuple[Hook, ...]:
        """The webhooks whose caBundle is not exactly this."""
        return tuple(hook for hook in self.hooks if hook.trusts != pem)


def read(item: Mapping[str, Any], *, kind: Kind, names: Names) -> Configuration:
    """A configuration out of the API server's object."""
    metadata = _mapping(item.get("metadata"))
    webhooks = item.get("webhooks")
    return Configuration(
        kind=kind,
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        owned=_owned(metadata.get("managedFields")),
        hooks=tuple(
            Hook(name=str(entry.get("name", "")), trusts=_decoded(client.get("caBundle")))
            for entry in (webhooks if isinstance(webhooks, list) else ())
            if names.are_called_by(client := _mapping(entry.get("clientConfig")))
        ),
    )


def apply_body(configuration: Configuration, *, pem: bytes) -> dict[str, Any]:
    """The body of a server-side apply that sets the caBundle of our webhooks and owns only that.

    It names the version and the uid that were read. Otherwise an apply would create what somebody
    has just deleted, the configuration or a webhook in it.
    """
    trust = {"caBundle": bundle.ca_bundle(pem)}
    return {
        "apiVersion": API_VERSION,
        "kind": configuration.kind,
        "metadata": {
            "name": configuration.name,
            "uid": configuration.uid,
            "resourceVersion": configuration.version,
        },
        "webhooks": [{"name": hook.name, "clientConfig": trust} for hook in configuration.hooks],
    }


def disown_patch(configuration: Configuration) -> list[dict[str, Any]]:
    """A JSON patch that gives up what the apply made us own, and keeps the caBundle.

    As long as anybody else owns a field of a webhook, a server-side apply cannot remove it: what is
    left of it is invalid and the whole apply is refused. Nobody needs to own a caBundle: an apply
    that does not name it leaves it alone.
    """
    path = f"/metadata/managedFields/{configuration.owned}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": configuration.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": configuration.version},
        {"op": "test", "path": f"{path}/manager", "value": MANAGER},
        {"op": "remove", "path": path},
    ]


def _owned(managed: object) -> int | None:
    entries = managed if isinstance(managed, list) else ()
    names = [_mapping(entry).get("manager") for entry in entries]
    return names.index(MANAGER) if MANAGER in names else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _decoded(value: object) -> bytes | None:
    if not isinstance(value, str) or not value:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return None
