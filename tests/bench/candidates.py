"""The servers that are compared, each told as far as it can be told to do what the product does.

TLS, HTTP/1.1, 32 threads, connections kept for 120 s. One process, unless the name says otherwise:
each further one has its own cache and watch of JobSets.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.hosts import KEEP_ALIVE_SECONDS, THREADS


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a server finds what it needs."""

    port: int
    certificate: Path
    key: Path
    objects: Path


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A server and how it learns that its certificate was renewed."""

    name: str
    arguments: Callable[[Place], Sequence[str | Path]]
    """What follows `python`."""

    renewal: Literal["watches"] | signal.Signals | None
    """It watches the files, it wants a signal, or it cannot."""


def _product(place: Place) -> Sequence[str | Path]:
    return (
        *("-m", "tfadmit_webhook", "--host", "127.0.0.1", "--port", str(place.port)),
        *("--tls-cert", place.certificate, "--tls-key", place.key),
        *("--metrics-port", "0", "--objects", place.objects),
    )


def _gunicorn(workers: int) -> Callable[[Place], Sequence[str | Path]]:
    return lambda place: (
        *("-m", "gunicorn", "bench.loaded:application", "--bind", f"127.0.0.1:{place.port}"),
        *("--certfile", place.certificate, "--keyfile", place.key),
        *("--worker-class", "gthread", "--workers", str(workers), "--threads", str(THREADS)),
        *("--keep-alive", str(KEEP_ALIVE_SECONDS)),
    )


def _granian(workers: int) -> Callable[[Place], Sequence[str | Path]]:
    return lambda place: (
        *("-m", "granian", "bench.loaded:application", "--interface", "wsgi", "--http", "1"),
        *("--host", "127.0.0.1", "--port", str(place.port)),
        *("--ssl-certificate", place.certificate, "--ssl-keyfile", place.key),
        *("--workers", str(workers), "--blocking-threads", str(THREADS), "--no-ws"),
    )


def _uvicorn(place: Place) -> Sequence[str | Path]:
    return (
        *("-m", "uvicorn", "bench.asgi:application", "--host", "127.0.0.1"),
        *("--port", str(place.port), "--loop", "uvloop", "--http", "httptools"),
        *("--ssl-certfile", place.certificate, "--ssl-keyfile", place.key),
        *("--timeout-keep-alive", str(KEEP_ALIVE_SECONDS), "--no-access-log"),
        *("--log-level", "warning", "--ws", "none", "--lifespan", "off"),
    )


def _hypercorn(place: Place) -> Sequence[str | Path]:
    return (
        *("-m", "hypercorn", "bench.loaded:application", "--bind", f"127.0.0.1:{place.port}"),
        *("--certfile", place.certificate, "--keyfile", place.key),
        *("--worker-class", "uvloop", "--keep-alive", str(KEEP_ALIVE_SECONDS)),
    )


def _host(name: str, *, objects: bool = False) -> Callable[[Place], Sequence[str | Path]]:
    return lambda place: (
        *("-m", "bench.hosts", name, str(place.port), place.certificate, place.key),
        *((place.objects,) if objects else ()),
    )


PRODUCT = Candidate(name="tfadmit", arguments=_product, renewal="watches")
CANDIDATES: Sequence[Candidate] = (
    PRODUCT,
    Candidate(name="tfadmit, uvloop", arguments=_host("uvloop", objects=True), renewal="watches"),
    Candidate(name="gunicorn gthread", arguments=_gunicorn(1), renewal=signal.SIGHUP),
    Candidate(name="gunicorn gthread, 2", arguments=_gunicorn(2), renewal=signal.SIGHUP),
    Candidate(name="granian", arguments=_granian(1), renewal=signal.SIGHUP),
    Candidate(name="granian, 2", arguments=_granian(2), renewal=signal.SIGHUP),
    Candidate(name="uvicorn, a2wsgi", arguments=_uvicorn, renewal=None),
    Candidate(name="hypercorn", arguments=_hypercorn, renewal=None),
    Candidate(name="cheroot", arguments=_host("cheroot"), renewal=None),
    Candidate(name="gevent", arguments=_host("gevent"), renewal=None),
)
