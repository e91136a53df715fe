"""One process that answers reviews: what it is told to run, and its parts put together.

An event loop that owns the sockets (`life`, `listen`), threads for the application (`app`), and
whatever look-ups and certificates need. Nothing is decided here, and nothing started: that is done
in `serve`.
"""

import contextlib
import functools
import signal
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timezone
from multiprocessing.connection import Connection
from typing import Protocol

from prometheus_client import CollectorRegistry, make_wsgi_app

from tfadmit_webhook import (
    app,
    bridge,
    drain,
    facts,
    handler,
    identity,
    life,
    line,
    listen,
    lookup,
    plain,
    port,
    processes,
    trust,
    wsgi,
)
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Settings
from tfadmit_webhook.signals import Signals


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


class Server:
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
        self.application = self._make_application()
        if plan.configurations:
            self._trust = self._make_trust()
            self.runners.append(plan.configurations(self._trust.take))

    def open(
        self,
        listener: socket.socket,
        other: Callable[[], life.Gate | None],
        ends: contextlib.ExitStack,
    ) -> life.Parts:
        """Make what answers; `other` makes what answers beside the reviews, in the loop."""
        plan = self._plan
        front = bridge.Bridge(
            self.application,
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
            beside=other,
            keeper=self._keeper,
            drain=self._drain,
            observer=self._observer,
            looks=looks,
            listening=lambda: port.say_listening("webhook", f"https://{port.address(listener)}"),
        )

    def _make_application(self) -> wsgi.Application:
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
        limits = self._plan.settings.server
        return listen.Door(
            listener,
            handler=front,
            limit=port.most_connections(in_flight=limits.max_in_flight, processes=limits.processes),
            observer=self._observer,
            identity=lambda: self._keeper.context,
            logger=life.HTTP_LOG,
            keepalive_timeout=limits.keep_alive_seconds,
            auto_decompress=False,  # a small body could become a large one
        )

    def plain(
        self,
        registry: CollectorRegistry,
        listener: socket.socket | None,
        ends: contextlib.ExitStack,
    ) -> life.Gate | None:
        """Make the door of the plain port, if there is to be one."""
        if listener is None:
            return None
        pages = {
            "/metrics": make_wsgi_app(registry),
            "/healthz": self.application,
            "/readyz": self.application,
        }
        return plain.door(pages, listener, ends)()

    def line(
        self, registry: CollectorRegistry, connection: Connection, signals: Signals
    ) -> life.Gate:
        """Make the end of the line to the main process; without that, this one ends at once."""
        return line.Answerer(
            connection,
            answers={
                processes.FAILING: self._failing,
                processes.METRICS: lambda: list(registry.collect()),
            },
            broken=lambda: signals.take(signal.SIGINT),
        )


def _context(
    reader: facts.ClusterReader, settings: Settings, remaining: Callable[[], float]
) -> lookup.Context:
    return lookup.Context(reader=reader, settings=settings, remaining=remaining)


def _now() -> datetime:
    return datetime.now(timezone.utc)
