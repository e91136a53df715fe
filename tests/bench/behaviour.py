"""How a server behaves when clients are slow, its certificate is renewed, or it is told to end.

Each check takes a server of its own and gives what was seen, not whether that is good.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import load
from bench.candidates import Candidate
from bench.running import Server
from harness.certificates import ServingCertificate

_GOOD_CONNECTIONS = 16
_BAD_CONNECTIONS = 50
_SECONDS = 2.0
# How long a renewed certificate may take; the product looks every 2 s, others restart.
_RENEWAL_SECONDS = 8.0
_END_SECONDS = 20.0
_HEAD = (
    b"POST /mutate/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
)


@dataclass(frozen=True, kw_only=True)
class Pressed:
    """16 good connections beside 50 bad ones."""

    share: float
    """Throughput as a share of what it was just before."""

    p99_ms: float
    broken: int


@dataclass(frozen=True, kw_only=True)
class Renewed:
    """A certificate was replaced under load."""

    seconds: float | None
    """Until a new connection saw it; None for never."""

    kept: int
    """How many of 16 connections from before could still be used."""

    broken: int


@dataclass(frozen=True, kw_only=True)
class Ended:
    """SIGTERM under load."""

    broken: int
    """Reviews that were sent and never answered."""

    seconds: float | None
    """Until the process was gone; None when it had to be killed."""


@dataclass(frozen=True, kw_only=True)
class Sending:
    """What is needed to send reviews."""

    program: Path
    path: str
    reviews: Path

    def start(
        self, target: load.Target, *, seconds: float = _SECONDS, patient: bool = False
    ) -> Callable[[], load.Result]:
        """Begin; the function that is given waits for the end. Patient: as an API server."""
        child = load.start(
            self.program,
            target,
            path=self.path,
            reviews=self.reviews,
            connections=_GOOD_CONNECTIONS,
            seconds=seconds,
            client="apiserver" if patient else "fast",
        )
        return lambda: load.finish(child)


def stalled_handshakes(server: Server, sending: Sending) -> Pressed:
    """50 clients that begin a handshake and say no more."""
    return _pressed(server, sending, lambda: _stalled(server.target))


def one_byte_bodies(server: Server, sending: Sending) -> Pressed:
    """50 clients that announce a body and send one byte of it."""
    return _pressed(server, sending, lambda: _dribbling(server.target))


def renewal(
    server: Server,
    sending: Sending,
    candidate: Candidate,
    *,
    next_one: ServingCertificate,
    at: Path,
) -> Renewed:
    """Replace the certificate in the folder `at` while reviews come in."""
    trust = ssl.create_default_context(cafile=server.target.ca)
    expected = ssl.PEM_cert_to_DER_cert(_first(next_one.certificate.read_text()))
    with contextlib.ExitStack() as ends:
        kept = [
            ends.enter_context(_connect(server.target, trust)) for _ in range(_GOOD_CONNECTIONS)
        ]
        for one in kept:
            _probe(one)
        finish = sending.start(server.target, seconds=_RENEWAL_SECONDS + 2, patient=True)
        time.sleep(1)
        for name, source in (("tls.key", next_one.key), ("tls.crt", next_one.certificate)):
            (at / "new").write_bytes(source.read_bytes())
            (at / "new").replace(at / name)
        if isinstance(candidate.renewal, signal.Signals):
            os.kill(server.program.pid, candidate.renewal)
        seconds = _seen(server.target, trust, expected)
        result = finish()
        usable = sum(_usable(one) for one in kept)
    return Renewed(seconds=seconds, kept=usable, broken=result.broken)


def end(server: Server, sending: Sending) -> Ended:
    """Send SIGTERM in the middle of the load, and wait for the process to go."""
    finish = sending.start(server.target, patient=True)
    time.sleep(_SECONDS / 2)
    began = time.monotonic()
    os.kill(server.program.pid, signal.SIGTERM)
    result = finish()
    while server.program.running and time.monotonic() - began < _END_SECONDS:
        time.sleep(0.02)
    took = None if server.program.running else time.monotonic() - began
    # The load ends by itself, so a server that waits for clients to go ends at that moment.
    return Ended(broken=result.broken, seconds=took)


def _pressed(
    server: Server,
    sending: Sending,
    bad: Callable[[], contextlib.AbstractContextManager[Sequence[socket.socket]]],
) -> Pressed:
    before = sending.start(server.target)()
    with bad():
        during = sending.start(server.target)()
    share = during.per_second / before.per_second if before.requests else 0.0
    return Pressed(share=share, p99_ms=during.p99_ms, broken=during.broken)


@contextlib.contextmanager
def _stalled(target: load.Target) -> Iterator[Sequence[socket.socket]]:
    with contextlib.ExitStack() as ends:
        held: list[socket.socket] = []
        for _ in range(_BAD_CONNECTIONS):
            # A server that is blocked already accepts no more connections than its backlog holds.
            with contextlib.suppress(OSError):
                plain = socket.create_connection(("127.0.0.1", target.port), timeout=0.5)
                held.append(ends.enter_context(plain))
                plain.sendall(b"\x16\x03\x01")  # the beginning of a ClientHello
        time.sleep(0.2)
        yield held


@contextlib.contextmanager
def _dribbling(target: load.Target) -> Iterator[Sequence[socket.socket]]:
    trust = ssl.create_default_context(cafile=target.ca)
    with contextlib.ExitStack() as ends:
        held: list[socket.socket] = []
        for _ in range(_BAD_CONNECTIONS):
            # A server that has no thread left shakes no more hands; it is blocked already then.
            with contextlib.suppress(OSError):
                held.append(ends.enter_context(_connect(target, trust, timeout=0.5)))
                held[-1].sendall(_HEAD + b"1000\r\n\r\n{")
        time.sleep(0.2)
        yield held


def _connect(target: load.Target, trust: ssl.SSLContext, *, timeout: float = 5) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", target.port), timeout=timeout)
    try:
        return trust.wrap_socket(plain, server_hostname="127.0.0.1")
    except BaseException:
        plain.close()
        raise


def _probe(connection: ssl.SSLSocket) -> int:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = http.client.HTTPResponse(connection, method="GET")
    answer.begin()
    answer.read()  # the rest would be taken for the next answer
    return answer.status


def _usable(connection: ssl.SSLSocket) -> bool:
    try:
        return _probe(connection) == 200
    except (OSError, http.client.HTTPException):
        return False


def _seen(target: load.Target, trust: ssl.SSLContext, expected: bytes) -> float | None:
    began = time.monotonic()
    while (now := time.monotonic() - began) < _RENEWAL_SECONDS:
        with contextlib.suppress(OSError), _connect(target, trust, timeout=2) as connection:
            if connection.getpeercert(binary_form=True) == expected:
                return now
        time.sleep(0.05)
    return None


def _first(chain: str) -> str:
    end = "-----END CERTIFICATE-----"
    return chain[: chain.index(end) + len(end)] + "\n"
