"""Objects of the API server over HTTPS: what tests read and write hundreds of times.

kubectl needs a third of a second to start; where its behaviour is not the point, this is used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

Object = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_TIMEOUT = 60
# A new custom resource is served shortly before discovery shows it.
_DISCOVERY_SECONDS = 5


class ApiError(Exception):
    """The API server refused; ``message`` is its own sentence."""

    def __init__(self, *, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Where objects of one kind live."""

    kind: str
    group: str
    version: str
    plural: str
    names: frozenset[str]
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As it stands in a manifest."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str | None = None) -> str:
        """The URL path of one object, or of all of them."""
        parts = ["apis" if self.group else "api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(quote(name))
        return "/" + "/".join(parts)


class Api:
    """One connection pool to an API server, as one user."""

    def __init__(self, *, url: str, ca: Path | None = None, token: str | None = None) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(ca_certs=str(ca) if ca else None, maxsize=32)
        self._resources: list[Resource] = []

    def close(self) -> None:
        """Close every connection."""
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Send one request and return the decoded object; a refusal becomes ``ApiError``."""
        headers = {**self._headers, "Accept": accept, "Content-Type": content_type}
        answer = self._pool.request(
            method,
            self._url + path + (f"?{urlencode(query)}" if query else ""),
            body=None if body is None else json.dumps(body),
            headers=headers,
            timeout=_TIMEOUT,
            retries=False,
        )
        return _decode(answer.status, answer.data)

    def text(self, path: str, *, query: Mapping[str, str] | None = None) -> str:
        """Read what is no object: the log of a container, or the API server's metrics."""
        url = self._url + path + (f"?{urlencode(query)}" if query else "")
        answer = self._pool.request(
            "GET", url, headers=self._headers, timeout=_TIMEOUT, retries=False
        )
        if answer.status >= 400:
            _decode(answer.status, answer.data)
        return answer.data.decode(errors="replace")

    def resource(self, kind: str, *, api_version: str | None = None) -> Resource:
        """Find a kind (``Pod``, ``pods`` or ``po``), asking the server anew while it is unknown."""
        deadline = time.monotonic() + _DISCOVERY_SECONDS
        while True:
            for resource in self._resources:
                if kind.lower() in resource.names and api_version in (None, resource.api_version):
                    return resource
            if time.monotonic() > deadline:
                raise LookupError(f"the cluster serves no {kind} ({api_version or 'any version'})")
            self._discover()

    def knows(self, kind: str) -> bool:
        """Whether the server serves the kind now."""
        self._discover()
        return any(kind.lower() in resource.names for resource in self._resources)

    def _discover(self) -> None:
        found = [
            resource
            for path in ("/api", "/apis")
            for resource in _resources(self.request("GET", path, accept=_DISCOVERY))
        ]
        if len(found) == len(self._resources):
            time.sleep(0.1)
        self._resources = found


def _decode(status: int, data: bytes) -> Object:
    try:
        decoded: Object = json.loads(data)
    except ValueError:
        decoded = {"message": data.decode(errors="replace")}
    if status >= 400:
        raise ApiError(
            status=status, reason=decoded.get("reason", ""), message=decoded.get("message", "")
        )
    return decoded


def _resources(discovery: Object) -> Iterator[Resource]:
    for group in discovery["items"]:
        for version in group["versions"]:
            for found in version["resources"]:
                yield Resource(
                    kind=found["responseKind"]["kind"],
                    group=group["metadata"].get("name", ""),
                    version=version["version"],
                    plural=found["resource"],
                    names=_names(found),
                    namespaced=found["scope"] == "Namespaced",
                )


def _names(found: Object) -> frozenset[str]:
    names = [found["responseKind"]["kind"], found["resource"], found.get("singularResource", "")]
    return frozenset(name.lower() for name in names + found.get("shortNames", []) if name)
