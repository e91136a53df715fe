"""The running server: parts put together, sockets, signals, and a clean end.

One process: an event loop that owns the sockets (`bridge`), threads for the application (`app`),
and whatever the look-ups need. Nothing is decided here. Everything that can be wrong with arguments
has been checked by the caller; what is left is a port that cannot be had.
"""

import asyncio
import contextlib
import functools
import logging
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from wsgiref.simple_server import WSGIServer

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CollectorRegistry, disable_created_metrics, start_http_server

from tfadmit_webhook import app, bridge, facts, lookup, tls
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Settings

_LOG = logging.getLogger("tfadmit")
_HTTP_LOG = logging.getLogger("tfadmit.http")
# As the API server's client: it gives up a handshake after 10 s.
_HANDSHAKE_SECONDS = 10.0
# Two calls of stat. The kubelet takes up to a minute to bring a changed Secret anyway.
_RENEWAL_SECONDS = 2.0
# A burst of pods opens hundreds of connections at once; the kernel cuts this at somaxconn.
_BACKLOG = 1024
# Longer than any review takes (the API server waits 30 s at most).
_FINISH_SECONDS = 30.0


class ListenError(Exception):
    """An address cannot be listened on; the message says which and why."""


class Source(facts.ClusterReader, Protocol):
    """Who answers look-ups, and what runs behind that."""

    def start(self) -> None:
        """Begin what runs behind it."""

    def stop(self) -> None:
        """End it."""

    def failing(self) -> list[str]:
        """Why requests should not come here yet, one line each."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run."""

    settings: Settings
    identity: tls.Identity
    certificate: tls.Files
    """Where a renewed certificate appears."""

    source: Callable[[Observer], Source]
    host: str
    port: int
    metrics_port: int | None
    """Port of the metrics; None for no metrics at all. 0 lets the system choose, as for `port`."""


def run(plan: Plan) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is being worked on.

    Raises:
        ListenError: a port cannot be had.
    """
    # Without a time stamp beside every counter, which would double the page.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    observer = Observer(registry)
    source = plan.source(observer)
    application = app.create_app(
        context_for=functools.partial(_context, source, plan.settings),
        ready=source.failing,
        observer=observer,
        server=plan.settings.server,
    )
    handler = bridge.Bridge(
        application, server=plan.settings.server, observer=observer, arrived=app.ARRIVED
    )
    with contextlib.ExitStack() as ends:
        ends.callback(handler.close)
        listener = ends.enter_context(_bind(plan.host, plan.port))
        ends.callback(_metrics(plan, registry))
        source.start()
        ends.callback(source.stop)
        asyncio.run(_serve(listener, handler, plan, observer))
    _LOG.info("stopped", extra={"fields": {}})


def _context(
    reader: facts.ClusterReader, settings: Settings, remaining: Callable[[], float]
) -> lookup.Context:
    return lookup.Context(reader=reader, settings=settings, remaining=remaining)


async def _serve(
    listener: socket.socket, handler: bridge.Bridge, plan: Plan, observer: Observer
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_log_loop_fault)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _HTTP_LOG.addFilter(_is_ours)
    protocol = web.Server(
        handler,
        access_log=None,
        logger=_HTTP_LOG,
        keepalive_timeout=plan.settings.server.keep_alive_seconds,
        auto_decompress=False,  # a small body could become a large one
    )
    server = await loop.create_server(
        protocol,
        sock=listener,
        ssl=plan.identity.context,
        backlog=_BACKLOG,
        ssl_handshake_timeout=_HANDSHAKE_SECONDS,
    )
    _say_listening("webhook", f"https://{_address(listener)}")
    renewal = asyncio.create_task(_renew(plan, observer))
    await stop.wait()
    renewal.cancel()
    _LOG.info("stopping", extra={"fields": {}})
    server.close()
    protocol.pre_shutdown()
    await protocol.shutdown(_FINISH_SECONDS)


async def _renew(plan: Plan, observer: Observer) -> None:
    """Show a renewed certificate from the next handshake on; keep the last good one otherwise."""
    trouble = ""
    while True:
        await asyncio.sleep(_RENEWAL_SECONDS)
        try:
            context = plan.certificate.renewed()
        except tls.TlsFault as error:
            if str(error) != trouble:  # once, not at every look
                trouble = str(error)
                observer.certificate_read(trouble=trouble)
            continue
        trouble = ""
        if context:
            plan.identity.exchange(context)
            observer.certificate_read()


def _bind(host: str, port: int) -> socket.socket:
    """Take the port before anything is started, so that a taken one is a plain message."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


def _metrics(plan: Plan, registry: CollectorRegistry) -> Callable[[], None]:
    """Serve the metrics on a plain port; gives what ends that."""
    if plan.metrics_port is None:
        return lambda: None
    try:
        server, thread = start_http_server(plan.metrics_port, plan.host, registry)
    except OSError as error:
        where = f"{plan.host}:{plan.metrics_port}"
        raise ListenError(
            f"cannot listen on {where} for metrics: {error.strerror or error}"
        ) from error
    _say_listening("metrics", f"http://{_address(server.socket)}/metrics")
    return functools.partial(_end, server, thread)


def _end(server: WSGIServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _say_listening(what: str, address: str) -> None:
    _LOG.info("listening", extra={"fields": {"what": what, "address": address}})


def _is_ours(record: logging.LogRecord) -> bool:
    """Keep out what clients do wrong: anybody who reaches the port could fill the log."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | ConnectionError)


def _log_loop_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError):  # connections that break
        return
    _LOG.error("fault in the event loop", exc_info=error, extra={"fields": context})
