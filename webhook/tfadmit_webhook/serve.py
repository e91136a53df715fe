"""The running server: parts put together, sockets, and a clean end.

One process: an event loop that owns the sockets (`life`, `listen`), threads for the application
(`app`), and whatever look-ups and certificates need. Nothing is decided here. Everything that can
be wrong with arguments has been checked by the caller; what is left is a port that cannot be had.
"""

import asyncio
import contextlib
import functools
import logging
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Protocol

from prometheus_client import CollectorRegistry, disable_created_metrics, make_wsgi_app

from tfadmit_webhook import (
    app,
    bridge,
    drain,
    facts,
    handler,
    identity,
    life,
    listen,
    log_thread,
    lookup,
    plain,
    port,
    trust,
    wsgi,
)
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Settings
from tfadmit_webhook.signals import Signals

_LOG = logging.getLogger("tfadmit")
# A kubelet and a few that collect metrics.
_PLAIN_CONNECTIONS = 64
_PLAIN_KEEP_ALIVE_SECONDS = 75


class Runner(Protocol):
    """Something that runs beside the event loop."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""


class Source(facts.ClusterReader, Runner, Protocol):
    """Who answers look-ups, and what runs behind that."""

    def failing(self) -> list[str]:
        """Why requests should not come here yet, one line each."""


class Certificate(Runner, Protocol):
    """Where certificates come from."""

    def look(self) -> None:
        """Look for another one; called every second in a thread."""


@dataclass(frozen=True, kw_only=True)
class Clients:
    """Whose certificates are asked of those who send reviews."""

    ca: bytes
    """Their CAs, as PEM."""

    look: Callable[[identity.Keeper], None]
    """Looks for other CAs."""

    names: Collection[str] = ()
    """Common names that may send reviews; every name when there are none."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run."""

    settings: Settings
    certificate: Callable[[identity.Keeper], Certificate]
    source: Callable[[Observer], Source]
    host: str
    port: int
    metrics_port: int | None
    """Port of metrics and probes; None for none. 0 lets the system choose, as for `port`."""

    clients: Clients | None = None
    """Who may send reviews; None for everybody who reaches the port."""

    configuration: str = ""
    """Name of the webhook configurations that must trust the certificate."""

    configurations: Callable[[Callable[[trust.Found], bool]], Runner] | None = None
    """Reads them."""


def run(plan: Plan, signals: Signals) -> None:
    """Serve until SIGTERM or SIGINT, then drain and finish what is being worked on.

    Raises:
        port.ListenError: a port cannot be had.
    """
    # Without a time stamp beside every counter, which would double the page.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    server = _Server(plan, Observer(registry))
    with log_thread.batched(), contextlib.ExitStack() as ends:
        parts = server.open(registry, ends)
        for runner in server.runners:
            runner.start()
            ends.callback(runner.stop)
        asyncio.run(life.live(parts, signals))
    _LOG.info("stopped", extra={"fields": {}})


class _Server:
    """The parts, each made once."""

    def __init__(self, plan: Plan, observer: Observer) -> None:
        self._plan = plan
        self._observer = observer
        self._drain = drain.Drain(server=plan.settings.server, clock=time.monotonic)
        client_ca = plan.clients.ca if plan.clients else b""
        self._keeper = identity.Keeper(observer=observer, now=_now, client_ca=client_ca)
        self._source = plan.source(observer)
        self._certificate = plan.certificate(self._keeper)
        self.runners: list[Runner] = [self._certificate, self._source]
        self._trust: trust.Trust | None = None
        if plan.configurations:
            self._trust = self._make_trust()
            self.runners.append(plan.configurations(self._trust.take))

    def open(self, registry: CollectorRegistry, ends: contextlib.ExitStack) -> life.Parts:
        """Take the ports and make what answers on them."""
        plan = self._plan
        listener = ends.enter_context(port.bind(plan.host, plan.port))
        application = self._application()
        front = bridge.Bridge(
            application,
            server=plan.settings.server,
            observer=self._observer,
            drain=self._drain,
            keys=bridge.Keys(arrived=app.ARRIVED, at_once=app.AT_ONCE),
            clients=bridge.Clients(names=plan.clients.names) if plan.clients else None,
        )
        ends.callback(front.close)
        looks = [self._certificate.look, self._keeper.look]
        if plan.clients:
            looks.append(functools.partial(plan.clients.look, self._keeper))
        return life.Parts(
            reviews=functools.partial(self._reviews, listener, front),
            plain=self._plain(application, registry, ends),
            keeper=self._keeper,
            drain=self._drain,
            observer=self._observer,
            looks=looks,
            listening=lambda: _say_listening("webhook", f"https://{_address(listener)}"),
        )

    def _application(self) -> wsgi.Application:
        return app.create_app(
            context_for=functools.partial(_context, self._source, self._plan.settings),
            ready=self._failing,
            observer=self._observer,
            server=self._plan.settings.server,
        )

    def _failing(self) -> list[str]:
        lines = ["the server is ending"] if self._drain.draining else []
        lines += [*self._keeper.failing(), *self._source.failing()]
        return lines + (self._trust.failing() if self._trust else [])

    def _make_trust(self) -> trust.Trust:
        return trust.Trust(
            name=self._plan.configuration,
            paths=handler.HANDLERS,
            context=lambda: self._keeper.context,
            observer=self._observer,
            authorities=self._keeper.authorities,
        )

    def _reviews(self, listener: socket.socket, front: bridge.Bridge) -> listen.Door:
        server = self._plan.settings.server
        return listen.Door(
            listener,
            handler=front,
            limit=port.most_connections(in_flight=server.max_in_flight),
            observer=self._observer,
            identity=lambda: self._keeper.context,
            logger=life.HTTP_LOG,
            keepalive_timeout=server.keep_alive_seconds,
            auto_decompress=False,  # a small body could become a large one
        )

    def _plain(
        self,
        application: wsgi.Application,
        registry: CollectorRegistry,
        ends: contextlib.ExitStack,
    ) -> Callable[[], listen.Door] | None:
        if self._plan.metrics_port is None:
            return None
        # Whoever read the address in the log may ask at once.
        listener = ends.enter_context(
            port.bind(self._plan.host, self._plan.metrics_port, what=" for metrics", at_once=True)
        )
        pages = {"/metrics": make_wsgi_app(registry)}
        front = plain.Plain({**pages, "/healthz": application, "/readyz": application})
        ends.callback(front.close)
        _say_listening("metrics", f"http://{_address(listener)}/metrics")
        return lambda: listen.Door(
            listener,
            handler=front,
            limit=_PLAIN_CONNECTIONS,
            observer=_Uncounted(),
            logger=life.HTTP_LOG,
            keepalive_timeout=_PLAIN_KEEP_ALIVE_SECONDS,
        )


class _Uncounted:
    """The metrics of connections are about reviews."""

    def shed(self, cause: str) -> None:
        pass

    def connected(self, count: int) -> None:
        pass


def _context(
    reader: facts.ClusterReader, settings: Settings, remaining: Callable[[], float]
) -> lookup.Context:
    return lookup.Context(reader=reader, settings=settings, remaining=remaining)


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _say_listening(what: str, address: str) -> None:
    _LOG.info("listening", extra={"fields": {"what": what, "address": address}})
