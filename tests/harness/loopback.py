"""Ports, servers in a thread, and health answers on this machine."""

from __future__ import annotations

import contextlib
import http.client
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import urllib3

_given: set[int] = set()


def free_port() -> int:
    """A port that is free now and that this process was not given before."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


@contextlib.contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """Let a server of the standard library serve in a thread; ended and closed afterwards."""
    # How often it looks whether it is to end; by default each end would take half a second.
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def listening(port: int, *, host: str = "127.0.0.1") -> bool:
    """Whether somebody takes connections on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def healthy(url: str, *, ca: Path | None = None, headers: Mapping[str, str] | None = None) -> bool:
    """Whether the URL answers 200 now. urllib3 heeds no proxy of the environment."""
    with urllib3.PoolManager(ca_certs=str(ca) if ca else None) as pool:
        try:
            answer = pool.request("GET", url, headers=headers, timeout=2, retries=False)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200


def ready(port: int) -> bool:
    """Whether a server's `/readyz` says so. As the kubelet: whatever its certificate is."""
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=trusting)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
