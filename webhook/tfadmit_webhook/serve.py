"""The running server: parts put together, sockets, and a clean end.

In each process: an event loop that owns the sockets (`life`, `listen`), threads for the application
(`app`), and whatever look-ups and certificates need. With more than one, a main process speaks for
them on the plain port (`processes`). Nothing is decided here. Everything that can
be wrong with arguments has been checked by the caller; what is left is a port that cannot be had.
"""

import asyncio
import contextlib
import functools
import logging
import signal
import socket
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from multiprocessing.connection import Connection
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
    line,
    listen,
    log_thread,
    lookup,
    plain,
    port,
    processes,
    trust,
    wsgi,
)
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Server, Settings
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


def run(plan: Plan, signals: Signals) -> int:
    """Serve until SIGTERM or SIGINT, then drain and finish what is being worked on.

    Returns the exit code: 1 when one of several processes ended unasked.

    Raises:
        port.ListenError: a port cannot be had.
    """
    # Without a time stamp beside every counter, which would double the page.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    with contextlib.ExitStack() as ends:
        ports = _Ports(plan, ends)
        if plan.settings.server.processes == 1:
            _answer_reviews(plan, signals, ports)
            code = 0
        else:
            code = _run_several(plan, signals, ports)
    _LOG.info("stopped", extra={"fields": {}})
    return code


class _Ports:
    """The sockets, taken before anything else is made."""

    def __init__(self, plan: Plan, ends: contextlib.ExitStack) -> None:
        self.reviews = ends.enter_context(port.bind(plan.host, plan.port))
        self.plain: socket.socket | None = None
        if plan.metrics_port is not None:
            # Whoever read the address in the log may ask at once.
            self.plain = ends.enter_context(
                port.bind(plan.host, plan.metrics_port, what=" for metrics", at_once=True)
            )
            _say_listening("metrics", f"http://{_address(self.plain)}/metrics")


def _answer_reviews(
    plan: Plan, signals: Signals, ports: _Ports, *, beside: Connection | None = None
) -> None:
    """Be the process, or one of several with a line to the main one, that answers reviews."""
    registry = CollectorRegistry()
    server = _Server(plan, Observer(registry))
    with log_thread.batched(), contextlib.ExitStack() as ends:
        other: Callable[[], life.Gate | None]
        if beside:
            other = functools.partial(server.line, registry, beside, signals)
        else:
            other = functools.partial(server.plain, registry, ports.plain, ends)
        parts = server.open(ports.reviews, other, ends)
        for runner in server.runners:
            runner.start()
            ends.callback(runner.stop)
        asyncio.run(life.live(parts, signals))


def _run_several(plan: Plan, signals: Signals, ports: _Ports) -> int:
    count = plan.settings.server.processes
    part = replace(plan, settings=replace(plan.settings, server=share(plan.settings.server)))

    def work(beside: Connection) -> None:
        if ports.plain:
            ports.plain.close()
        _answer_reviews(part, signals, ports, beside=beside)

    made = processes.start(count, work)
    ports.reviews.close()  # or it would be open for as long as this process lives
    main = processes.Main(made)
    with contextlib.ExitStack() as ends:
        if ports.plain:
            registry = CollectorRegistry()
            registry.register(main)
            pages = {
                "/metrics": make_wsgi_app(registry),
                "/healthz": app.page(main.silent),
                "/readyz": app.page(main.failing),
            }
            main.plain = _plain_door(pages, ports.plain, ends)
        asyncio.run(main.live(signals))
    return main.code


def share(server: Server) -> Server:
    """Give what one of several processes may take of what the server may."""
    return replace(
        server,
        threads=-(-server.threads // server.processes),
        max_in_flight=-(-server.max_in_flight // server.processes),
    )


def _plain_door(
    pages: Mapping[str, wsgi.Application], listener: socket.socket, ends: contextlib.ExitStack
) -> Callable[[], listen.Door]:
    front = plain.Plain(pages)
    ends.callback(front.close)
    return lambda: listen.Door(
        listener,
        handler=front,
        limit=_PLAIN_CONNECTIONS,
        observer=_Uncounted(),
        logger=life.HTTP_LOG,
        keepalive_timeout=_PLAIN_KEEP_ALIVE_SECONDS,
    )


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
            listening=lambda: _say_listening("webhook", f"https://{_address(listener)}"),
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
        server = self._plan.settings.server
        return listen.Door(
            listener,
            handler=front,
            limit=port.most_connections(in_flight=server.max_in_flight, processes=server.processes),
            observer=self._observer,
            identity=lambda: self._keeper.context,
            logger=life.HTTP_LOG,
            keepalive_timeout=server.keep_alive_seconds,
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
        return _plain_door(pages, listener, ends)()

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
