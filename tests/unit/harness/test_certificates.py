"""Serving certificates that a strict client accepts."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from harness import certificates


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_strict_client_trusts_the_certificate(tmp_path: Path, host: str):
    files = certificates.serving_certificate(directory=tmp_path, host=host)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    client = ssl.create_default_context(cafile=str(files.ca))
    # The default from Python 3.13 on.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept_one, args=(listener, server))
        thread.start()
        with (
            socket.create_connection(listener.getsockname(), timeout=10) as raw,
            client.wrap_socket(raw, server_hostname=host) as secure,
        ):
            assert secure.recv(2) == b"ok"
        thread.join(10)


def _accept_one(listener: socket.socket, context: ssl.SSLContext) -> None:
    raw, _ = listener.accept()
    with raw, context.wrap_socket(raw, server_side=True) as secure:
        secure.sendall(b"ok")
