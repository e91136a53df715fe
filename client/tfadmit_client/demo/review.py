"""Sends AdmissionReviews over TLS that is verified with one CA, as an API server does.

Here: the request of the review, the connection, and what came back. Not here: starting a server
(`server`), nor showing anything.
"""

import base64
import contextlib
import http.client
import json
import ssl
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfadmit_client import fault
from tfadmit_client.expand import apply
from tfadmit_webhook import raw
from tfadmit_webhook.decision import Operation

_SECONDS = 10.0  # as the webhook configurations have it


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back for one object."""

    allowed: bool
    message: str
    reason: str
    patch: Sequence[Operation]
    result: raw.JsonObject
    """The object with the patch applied."""

    milliseconds: float


class Connection:
    """One connection that is kept for all reviews."""

    def __init__(self, connection: http.client.HTTPSConnection, *, address: str) -> None:
        self._connection = connection
        self._address = address

    def send(self, path: str, content: raw.JsonObject, *, user: str) -> Answer:
        """Send the creation of an object.

        Raises:
            ClientError: no answer came, or one that is no review.
        """
        body = json.dumps(_review(content, user=user))
        started = time.perf_counter()
        with _told(self._address):
            self._connection.request(
                "POST",
                f"{path}?timeout={_SECONDS:.0f}s",
                body=body,
                headers={"Content-Type": "application/json"},
            )
            answer = self._connection.getresponse()
            text = answer.read()
        milliseconds = (time.perf_counter() - started) * 1000
        if answer.status != http.client.OK:
            raise fault.ClientError(f"{path} answered HTTP {answer.status}: {text.decode()[:500]}")
        return _answer(json.loads(text), content, milliseconds=milliseconds)


@contextlib.contextmanager
def _told(address: str) -> Iterator[None]:
    """Turn what can go wrong on a connection into a sentence."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise fault.ClientError(f"the connection to {address} broke: {error}") from error


@contextlib.contextmanager
def connected(address: str, *, authority: Path) -> Iterator[Connection]:
    """Connect first; the round trips that are measured later are without the handshake."""
    url = urllib.parse.urlsplit(address)
    context = ssl.create_default_context(cafile=str(authority))
    connection = http.client.HTTPSConnection(
        url.hostname or "", url.port, timeout=_SECONDS, context=context
    )
    try:
        with _told(address):
            connection.connect()
        yield Connection(connection, address=address)
    finally:
        connection.close()


def _review(content: raw.JsonObject, *, user: str) -> dict[str, Any]:
    group, _, version = raw.text(content.get("apiVersion")).rpartition("/")
    kind = raw.text(content.get("kind"))
    metadata = raw.mapping(content.get("metadata"))
    request: dict[str, Any] = {
        "uid": str(uuid.uuid4()),
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
        "operation": "CREATE",
        "userInfo": {"username": user},
        "object": content,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    for key in ("name", "namespace"):
        if key in metadata:
            request[key] = metadata[key]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _answer(review: object, content: raw.JsonObject, *, milliseconds: float) -> Answer:
    response = raw.mapping(raw.at(review, ("response",)))
    status = raw.mapping(response.get("status"))
    encoded = raw.text(response.get("patch"))
    patch: list[Operation] = json.loads(base64.b64decode(encoded)) if encoded else []
    return Answer(
        allowed=response.get("allowed") is True,
        message=raw.text(status.get("message")),
        reason=raw.text(status.get("reason")),
        patch=patch,
        result=apply.apply(content, patch),
        milliseconds=milliseconds,
    )
