"""The objects in the cluster: read the two Secrets and the two configurations, write one at a time.

Here: paths, creation where nothing is, updates guarded by the version that was read, server-side
apply of caBundle. Not here: what is written and when (`steps`, `plan`), HTTP (`kube`). I/O: by way
of `kube`.
"""

import base64
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tfadmit_certs import hooks, kube, state
from tfadmit_certs.names import MANAGER, Names, Which
from tfadmit_certs.state import View, Write

_PLURALS: Final[Mapping[hooks.Kind, str]] = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_LABELS: Final = {
    "app.kubernetes.io/name": "tfadmit",
    "app.kubernetes.io/component": "certificates",
    "app.kubernetes.io/managed-by": MANAGER,
}
_TYPES: Final[Mapping[Which, str]] = {"ca": "Opaque", "leaf": "kubernetes.io/tls"}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One object to watch: the path of its collection and its name."""

    path: str
    name: str


class Store:
    """The objects, as they were at the last look."""

    def __init__(self, api: kube.Api, *, names: Names) -> None:
        self._api = api
        self._names = names
        self._raw: dict[Which, kube.JsonObject] = {}

    def watched(self) -> Iterator[Watched]:
        """What a change of must be noticed."""
        for which in _TYPES:
            yield Watched(path=self._secrets(), name=self._names.secret(which))
        for kind in hooks.KINDS:
            yield Watched(path=_configurations(kind), name=self._names.configuration)

    def look(self) -> View:
        """Read all of it anew; what does not exist is absent.

        What is written last is read first: the version of a configuration is then older than the
        CA that goes into it, that of the leaf older than the CA that signs it. So whoever acts on a
        CA that was replaced meanwhile meets a conflict, even without the Lease.

        Raises:
            kube.ApiError: something could not be read.
        """
        found = [self._configuration(kind) for kind in hooks.KINDS]
        leaf = self._secret("leaf")
        ca = self._secret("ca")
        return View(
            authority=state.read_authority(ca, label=self._names.label("ca")) if ca else None,
            leaf=state.read_leaf(leaf, label=self._names.label("leaf")) if leaf else None,
            configurations=tuple(item for item in found if item),
        )

    def write(self, change: Write) -> None:
        """Write a Secret, if it is still as it was at the last look.

        Raises:
            kube.ConflictError: it is not.
            kube.ApiError: it could not be written.
        """
        if change.version is None:
            self._api.request(
                "POST",
                self._secrets(),
                query={"fieldManager": MANAGER},
                body=self._new(change),
            )
            return
        self._api.request(
            "PUT",
            f"{self._secrets()}/{self._names.secret(change.which)}",
            query={"fieldManager": MANAGER},
            body=_changed(self._raw[change.which], change),
        )

    def publish(self, configuration: hooks.Configuration, *, pem: bytes) -> None:
        """Set the caBundle of our webhooks in a configuration, by server-side apply.

        Raises:
            kube.ConflictError: the configuration is not as it was at the last look, or gone.
            kube.ApiError: it was refused.
        """
        self._api.request(
            "PATCH",
            f"{_configurations(configuration.kind)}/{configuration.name}",
            query={"fieldManager": MANAGER, "force": "true"},
            body=hooks.apply_body(configuration, pem=pem),
            content_type=kube.APPLY,
        )

    def disown(self, configuration: hooks.Configuration) -> None:
        """Give up the ownership that `publish` brought; see `hooks.disown_patch`.

        Raises:
            kube.ConflictError: the configuration is not as it was at the last look, or gone.
            kube.ApiError: it was refused.
        """
        self._api.request(
            "PATCH",
            f"{_configurations(configuration.kind)}/{configuration.name}",
            query={"fieldManager": MANAGER},
            body=hooks.disown_patch(configuration),
            content_type=kube.JSON_PATCH,
        )

    def annotate(self, which: Which, annotations: Mapping[str, str]) -> None:
        """Set annotations of a Secret, whatever else changes in it.

        Raises:
            kube.ApiError: it could not be written.
        """
        self._api.request(
            "PATCH",
            f"{self._secrets()}/{self._names.secret(which)}",
            body={"metadata": {"annotations": dict(annotations)}},
            content_type=kube.MERGE,
        )

    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self._names.namespace}/secrets"

    def _secret(self, which: Which) -> kube.JsonObject | None:
        found = self._get(f"{self._secrets()}/{self._names.secret(which)}")
        if found is not None:
            self._raw[which] = found
        return found

    def _configuration(self, kind: hooks.Kind) -> hooks.Configuration | None:
        found = self._get(f"{_configurations(kind)}/{self._names.configuration}")
        return hooks.read(found, kind=kind, names=self._names) if found else None

    def _get(self, path: str) -> kube.JsonObject | None:
        try:
            return self._api.request("GET", path)
        except kube.NotFoundError:
            return None

    def _new(self, change: Write) -> kube.JsonObject:
        empty: kube.JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self._names.secret(change.which),
                "namespace": self._names.namespace,
                "labels": dict(_LABELS),
            },
            "type": _TYPES[change.which],
        }
        return _changed(empty, change)


def _changed(item: kube.JsonObject, change: Write) -> kube.JsonObject:
    """The Secret with the change; what the change does not name stays, other people's keys too."""
    changed = copy.deepcopy(item)
    changed["data"] = _merged(
        changed.get("data"),
        {
            name: None if value is None else base64.b64encode(value).decode()
            for name, value in change.data.items()
        },
    )
    metadata = changed["metadata"]
    metadata["annotations"] = _merged(metadata.get("annotations"), change.annotations)
    return changed


def _merged(old: object, change: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**(old if isinstance(old, dict) else {}), **change}
    return {name: value for name, value in merged.items() if value is not None}


def _configurations(kind: hooks.Kind) -> str:
    return f"/apis/{hooks.API_VERSION}/{_PLURALS[kind]}"
