"""The running server: ports, processes, and a clean end.

One process that answers reviews (`server`), or several with a main process that speaks for them on
the plain port (`processes`). Everything that can be wrong with arguments has been checked by the
caller; what is left is a port that cannot be had.
"""

import asyncio
import contextlib
import functools
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection

from prometheus_client import CollectorRegistry, disable_created_metrics, make_wsgi_app

from tfadmit_webhook import app, life, log_thread, plain, port, processes, server
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Server
from tfadmit_webhook.signals import Signals

_LOG = logging.getLogger("tfadmit")


def run(plan: server.Plan, signals: Signals) -> int:
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

    def __init__(self, plan: server.Plan, ends: contextlib.ExitStack) -> None:
        self.reviews = ends.enter_context(port.bind(plan.host, plan.port))
        self.plain: socket.socket | None = None
        if plan.metrics_port is not None:
            # Whoever read the address in the log may ask at once.
            self.plain = ends.enter_context(
                port.bind(plan.host, plan.metrics_port, what=" for metrics", at_once=True)
            )
            port.say_listening("metrics", f"http://{port.address(self.plain)}/metrics")


def _answer_reviews(
    plan: server.Plan, signals: Signals, ports: _Ports, *, beside: Connection | None = None
) -> None:
    """Be the process, or one of several with a line to the main one, that answers reviews."""
    registry = CollectorRegistry()
    made = server.Server(plan, Observer(registry))
    with log_thread.batched(), contextlib.ExitStack() as ends:
        other: Callable[[], life.Gate | None]
        if beside:
            other = functools.partial(made.line, registry, beside, signals)
        else:
            other = functools.partial(made.plain, registry, ports.plain, ends)
        parts = made.open(ports.reviews, other, ends)
        for runner in made.runners:
            runner.start()
            ends.callback(runner.stop)
        asyncio.run(life.live(parts, signals))


def _run_several(plan: server.Plan, signals: Signals, ports: _Ports) -> int:
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
            main.plain = plain.door(pages, ports.plain, ends)
        asyncio.run(main.live(signals))
    return main.code


def share(limits: Server) -> Server:
    """Give what one of several processes may take of what the server may."""
    return replace(
        limits,
        threads=-(-limits.threads // limits.processes),
        max_in_flight=-(-limits.max_in_flight // limits.processes),
    )
