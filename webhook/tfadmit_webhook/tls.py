"""TLS as the server speaks it: a context out of a certificate, its key and the CA of its clients.

The protocol's settings stand here, once. Keys come as bytes and are handed to OpenSSL through a
file in memory, so that none lies on any file system. Which certificate is shown is decided in
`identity`.
"""

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# TLS 1.2 with forward secrecy and authenticated encryption only; 1.3 has nothing else anyway.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


class TlsFault(Exception):  # noqa: N818 - named like the faults of settings and files
    """A certificate or key cannot be used; the message says which and why."""


def server_context(*, certificate: bytes, key: bytes, client_ca: bytes = b"") -> ssl.SSLContext:
    """Make a server's context.

    Args:
        certificate: the certificate and its chain, as PEM.
        key: its private key, as PEM.
        client_ca: the CAs of clients, as PEM. A client may come without a certificate, as the
            kubelet does; one that it shows must be of these CAs.

    Raises:
        TlsFault: OpenSSL takes one of them not.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # No resumption: a session would outlive the certificate that it began with, and API servers
    # keep their connections.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    try:
        with _in_memory(certificate.rstrip() + b"\n" + key) as path:
            # Without the password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(path, password=_refuse_password)
    except ssl.SSLError as error:
        raise TlsFault(f"certificate and key cannot be used ({error.reason or error})") from error
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        _trust(context, client_ca)
    return context


def check_authorities(client_ca: bytes) -> None:
    """Check that the CAs of clients can be read.

    Raises:
        TlsFault: they cannot.
    """
    _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), client_ca)


def common_name(peer: Mapping[str, Any]) -> str:
    """Give the common name of a verified certificate, as `getpeercert` describes it."""
    parts = (pair for part in peer.get("subject", ()) for pair in part)
    return next((str(value) for name, value in parts if name == "commonName"), "")


def read(option: str, path: Path) -> bytes:
    """Read a file that an option names.

    Raises:
        TlsFault: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsFault(f"{option} {path}: {error.strerror or error}") from error


def _trust(context: ssl.SSLContext, client_ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=client_ca.decode("ascii", "replace"))
    except ssl.SSLError as error:
        why = error.reason or error
        raise TlsFault(f"--client-ca holds no readable PEM certificate ({why})") from error


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Give a path to these bytes that no other process and no disk ever sees."""
    with os.fdopen(os.memfd_create("tls"), "wb", buffering=0) as file:
        file.write(content)
        yield f"/proc/self/fd/{file.fileno()}"


def _refuse_password() -> str:
    raise TlsFault("the key is encrypted: openssl pkey -in FILE -out FILE decrypts it")
