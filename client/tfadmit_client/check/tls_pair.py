"""What a TLS client would say to the pair of a Secret: when it ends, and whether it is trusted.

The handshake itself is the webhook's `handshake`. The server's side of it needs the key, which is
written to a directory that only the user can read, and removed.
"""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfadmit_webhook import handshake


class RefusedError(Exception):
    """The certificate cannot be used, or is not trusted; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate with its chain, and its key, as PEM."""

    certificate: str
    key: str = field(repr=False)

    @classmethod
    def decoded(cls, data: Mapping[str, str]) -> "Pair":
        """Read the data of a Secret.

        Raises:
            RefusedError: there is no pair in it.
        """
        try:
            certificate, key = (
                base64.b64decode(data[name], validate=True).decode("ascii")
                for name in ("tls.crt", "tls.key")
            )
        except (KeyError, ValueError) as error:
            raise RefusedError("there is no PEM in tls.crt and tls.key") from error
        return cls(certificate=certificate, key=key)


def end(pair: Pair) -> float:
    """Give when the certificate expires, in seconds since the epoch.

    Raises:
        RefusedError: it has expired, is not valid yet, or is none.
    """
    client = _client(pair.certificate)
    client.check_hostname = False
    # The leaf itself is what is trusted: who signed it is not the question here.
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    shown = _shaken(pair, client, name=None)
    return float(ssl.cert_time_to_seconds(shown))


def trust(pair: Pair, *, bundle: str, name: str) -> None:
    """Find out whether a client that trusts a bundle takes the certificate for a name.

    Raises:
        RefusedError: it does not, and why.
    """
    try:
        _shaken(pair, _client(bundle), name=name)
    except RefusedError as error:
        raise RefusedError(
            f"a webhook that is called as {name} does not trust it: {error}"
        ) from error


def _client(bundle: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=bundle)
    except (ssl.SSLError, ValueError) as error:
        raise RefusedError("what should be certificates is no PEM") from error
    return context


def _shaken(pair: Pair, client: ssl.SSLContext, *, name: str | None) -> str:
    """Shake hands; give until when the client may trust what it was shown."""
    try:
        asking = handshake.shake(client, _server(pair), host=name)
    except ssl.SSLCertVerificationError as error:
        raise RefusedError(error.verify_message) from error
    except (ssl.SSLError, OSError, ValueError) as error:
        raise RefusedError(" ".join(str(error).split())) from error
    shown = asking.getpeercert() or {}
    return str(shown.get("notAfter", ""))


def _server(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # OpenSSL reads files only.
    with tempfile.TemporaryDirectory(prefix="tfadmit-") as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_text(pair.certificate)
        key.touch(mode=0o600)
        key.write_text(pair.key)
        # A passphrase would be asked for on the terminal.
        context.load_cert_chain(certificate, key, password="")
    return context
