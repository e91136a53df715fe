"""Whether the API server can verify us: the caBundles of our webhooks against our certificate.

For each webhook that leads to one of our paths a handshake is made in memory, with the caBundle and
by the name that the API server would use. Before all of them succeeded once, calls would fail, so
the server is not ready; later a bundle that does not fit is a metric and a log line only, because a
Service without servers cannot be verified either. Configurations are read in `kube.configurations`.
"""

import base64
import binascii
import logging
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from tfadmit_webhook import handshake, raw

_LOG = logging.getLogger("tfadmit")

Found = Mapping[str, raw.JsonObject | str]
"""By kind, `mutating` and `validating`: the configuration, or why it cannot be read."""


class Observer(Protocol):
    """Who is told."""

    def ca_bundle(self, *, configuration: str, trusted: bool, size: int) -> None:
        """Take note of whether a configuration trusts us, and of the bytes of its caBundle."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """How the API server calls one webhook."""

    webhook: str
    host: str
    bundle: bytes
    """The caBundle as PEM; empty when there is none."""


class Trust:
    """What is known about the configurations."""

    def __init__(
        self,
        *,
        name: str,
        paths: Collection[str],
        context: Callable[[], ssl.SSLContext | None],
        observer: Observer,
        authorities: Callable[[bytes], None],
    ) -> None:
        """Watch over the configurations of one name.

        Args:
            name: of both configurations.
            paths: those that lead to us.
            context: gives what we show now; None when we have nothing to show.
            observer: is told of every result.
            authorities: is given a caBundle that trusts us.
        """
        self._name = name
        self._paths = paths
        self._context = context
        self._observer = observer
        self._authorities = authorities
        self._told: dict[str, str] = {}
        self._settled = False
        self._failing = [f"the webhook configurations {name} are not read yet"]

    def failing(self) -> list[str]:
        """Why requests should not come here yet, one line each; nothing once all was well."""
        return [] if self._settled else self._failing

    def take(self, found: Found) -> bool:
        """Judge the configurations as they are now; tells whether all were well once."""
        context = self._context()
        if context is None:
            return self._settled
        failing = []
        for kind, item in found.items():
            calls = [] if isinstance(item, str) else list(leading(item, paths=self._paths))
            trouble = item if isinstance(item, str) else self._trouble(kind, calls, context)
            size = max((len(call.bundle) for call in calls), default=0)
            self._observer.ca_bundle(configuration=kind, trusted=not trouble, size=size)
            self._tell(kind, trouble)
            failing += [trouble] if trouble else []
            if calls and not trouble:
                self._authorities(calls[0].bundle)
        self._failing = failing
        self._settled = self._settled or not failing
        return self._settled

    def _trouble(self, kind: str, calls: list[Call], context: ssl.SSLContext) -> str:
        where = f"the {kind} configuration {self._name}"
        if not calls:
            return f"{where} has no webhook with a path of ours"
        for call in calls:
            if why := refusal(call, context=context):
                return f"{where} does not trust this server: {call.webhook}: {why}"
        return ""

    def _tell(self, kind: str, trouble: str) -> None:
        if self._told.get(kind) != trouble:
            self._told[kind] = trouble
            level = logging.WARNING if trouble else logging.INFO
            fields = {"configuration": kind, "trusted": not trouble, "message": trouble}
            _LOG.log(level, "caBundle", extra={"fields": fields})


def leading(configuration: raw.JsonObject, *, paths: Collection[str]) -> Iterator[Call]:
    """Give the webhooks whose path is one of these.

    The path and not the name decides: a name that our certificate is not for is a mistake that must
    be seen, and a path that we do not have is another server's.
    """
    for webhook in raw.sequence(configuration.get("webhooks")):
        config = raw.mapping(raw.mapping(webhook).get("clientConfig"))
        service, url = raw.mapping(config.get("service")), raw.text(config.get("url"))
        path = raw.text(service.get("path")) if service else urlsplit(url).path
        if path not in paths:
            continue
        # As the API server names a Service in a handshake (webhook.ClientManager).
        inside = f"{raw.text(service.get('name'))}.{raw.text(service.get('namespace'))}.svc"
        yield Call(
            webhook=raw.text(raw.mapping(webhook).get("name")),
            host=inside if service else urlsplit(url).hostname or "",
            bundle=_decoded(raw.text(config.get("caBundle"))),
        )


def refusal(call: Call, *, context: ssl.SSLContext) -> str:
    """Say why the API server would not take our certificate; empty when it would."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Go trusts every certificate of a bundle, not only those that signed themselves.
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        if call.bundle:
            client.load_verify_locations(cadata=call.bundle.decode("ascii", "replace"))
        else:  # then it takes the CAs of its system
            client.load_default_certs()
        handshake.shake(client, context, host=call.host)
    except ssl.SSLCertVerificationError as error:
        why = f"{error.verify_message} (called by the name {call.host})"
        return why if call.bundle else f"it has no caBundle, and by the system's CAs: {why}"
    except (ssl.SSLError, ValueError) as error:
        return f"its caBundle cannot be used ({getattr(error, 'reason', None) or error})"
    return ""


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
