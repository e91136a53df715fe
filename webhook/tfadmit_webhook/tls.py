"""The server's certificate as an SSLContext, checked before anybody connects.

Here: reading the files, the protocol's settings, and the one place where a certificate is exchanged
for a newer one while the server runs. When to look is decided elsewhere.
"""

import ssl
from pathlib import Path

# TLS 1.2 with forward secrecy and authenticated encryption only; 1.3 has nothing else anyway.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


class TlsFault(Exception):  # noqa: N818 - named like the faults of settings and files
    """Certificate and key cannot be used; the message says which file and why."""


class Identity:
    """What the server shows of itself; new handshakes take the certificate that was set last."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._current = context
        self._listener = context
        # Called at every handshake, also by clients that name no server.
        context.sni_callback = self._choose

    @property
    def context(self) -> ssl.SSLContext:
        """The context to listen with; it stays the same for the life of the server."""
        return self._listener

    def exchange(self, context: ssl.SSLContext) -> None:
        """Show this certificate from the next handshake on."""
        self._current = context

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _at: ssl.SSLContext) -> None:
        connection.context = self._current


class Files:
    """Certificate and key as files that may be replaced while the server runs.

    Kubernetes replaces a mounted Secret by a link, other tools write the files anew; both change
    what the paths lead to.
    """

    def __init__(self, *, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._taken: tuple[tuple[int, int, int], ...] = ()

    def load(self) -> ssl.SSLContext:
        """Read both files.

        Raises:
            TlsFault: they cannot be used.
        """
        stamps = self._stamps()
        context = load(certificate=self._certificate, key=self._key)
        self._taken = stamps
        return context

    def renewed(self) -> ssl.SSLContext | None:
        """Read both files if they are others than at the last successful reading.

        Raises:
            TlsFault: they cannot be used, perhaps only because one of them is not there yet.
        """
        return None if self._stamps() == self._taken else self.load()

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        return _stamp(self._certificate), _stamp(self._key)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Give what tells a file from its successor: a new one can have the same time and size."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def load(*, certificate: Path, key: Path) -> ssl.SSLContext:
    """Read a certificate with its chain, and its key.

    Raises:
        TlsFault: a file is missing, unreadable, or the two do not belong together.
    """
    for option, path in (("--tls-cert", certificate), ("--tls-key", key)):
        _check_readable(option, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # No resumption: a session would outlive the certificate that it began with, and API servers
    # keep their connections.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    try:
        # Without the password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except ssl.SSLError as error:
        raise TlsFault(_sentence(error, certificate=certificate, key=key)) from error
    return context


def _check_readable(option: str, path: Path) -> None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise TlsFault(f"{option} {path}: {error.strerror or error}") from error


def _refuse_password() -> str:
    raise TlsFault("--tls-key: the key is encrypted: openssl pkey -in FILE -out FILE decrypts it")


def _sentence(error: ssl.SSLError, *, certificate: Path, key: Path) -> str:
    if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return f"--tls-key {key} does not belong to --tls-cert {certificate}"
    for option, path in (("--tls-cert", certificate), ("--tls-key", key)):
        if b"-----BEGIN " not in path.read_bytes():
            return f"{option} {path}: is no PEM file"
    return f"--tls-cert {certificate}, --tls-key {key}: cannot be used ({error.reason or error})"
