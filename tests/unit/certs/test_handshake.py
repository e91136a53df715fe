"""Real TLS over loopback sockets: what Python's ssl (OpenSSL) makes of the certificates."""

import contextlib
import socket
import ssl
import threading
from datetime import datetime, timedelta, timezone

import pytest

from tfadmit_certs import bundle
from unit.certs import builders

NAMES = builders.make_names(
    dns=["localhost", "hook.team.svc", "*.wild.team.svc"], ips=["127.0.0.1", "::1"]
)
ISSUED = datetime.now(timezone.utc)  # OpenSSL judges by the wall clock


@pytest.fixture(scope="module", name="ca")
def make_ca():
    return builders.make_ca(now=ISSUED)


@pytest.fixture(name="serve")
def make_serve(tmp_path):
    """A function that serves a pair on loopback, one connection at a time, and gives the port."""
    with contextlib.ExitStack() as stack:
        yield lambda pair: stack.enter_context(serving(pair, directory=tmp_path))


@contextlib.contextmanager
def serving(pair, *, directory):
    certificate, key = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=answer, args=(listener, context))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        thread.join(timeout=10)
        listener.close()


def answer(listener, context):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.settimeout(10)
        # A client that refuses the certificate ends the handshake: its right, not our fault.
        with (
            connection,
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as secure,
        ):
            secure.sendall(b"hello")


def greet(port, *, name, ca):
    """Connect as the strictest client does; Python 3.13 is so by default."""
    context = ssl.create_default_context(cadata=ca.certificate.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    assert context.check_hostname
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=name) as secure,
    ):
        return secure.recv(5), secure.version()


@pytest.mark.parametrize(
    "name", ["localhost", "hook.team.svc", "any.wild.team.svc", "127.0.0.1", "::1"]
)
def test_a_strict_client_accepts_each_name(serve, ca, name):
    port = serve(builders.make_leaf(ca, names=NAMES, now=ISSUED))
    assert greet(port, name=name, ca=ca) == (b"hello", "TLSv1.3")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("other.team.svc", "Hostname mismatch"),
        ("team.svc", "Hostname mismatch"),
        ("a.b.wild.team.svc", "Hostname mismatch"),
        ("127.0.0.2", "IP address mismatch"),
    ],
)
def test_a_name_that_is_not_in_the_certificate_is_refused(serve, ca, name, reason):
    port = serve(builders.make_leaf(ca, names=NAMES, now=ISSUED))
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        greet(port, name=name, ca=ca)
    assert greet(port, name="localhost", ca=ca)[0] == b"hello"


def test_a_client_that_trusts_another_ca_refuses(serve, ca):
    port = serve(builders.make_leaf(ca, names=NAMES, now=ISSUED))
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(port, name="localhost", ca=builders.make_ca(now=ISSUED))


def test_an_expired_leaf_is_refused(serve):
    past = ISSUED - timedelta(days=2)
    ca = builders.make_ca(now=past)
    port = serve(builders.make_leaf(ca, names=NAMES, now=past, lifetime=builders.DAY))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        greet(port, name="localhost", ca=ca)


@pytest.mark.parametrize(
    ("ahead", "accepted"), [(timedelta(minutes=4), True), (timedelta(minutes=6), False)]
)
def test_a_clock_that_lags_up_to_five_minutes_is_forgiven(serve, ahead, accepted):
    """The certificate is issued by a clock that runs ahead of this machine's."""
    issued = datetime.now(timezone.utc) + ahead
    ca = builders.make_ca(now=issued)
    port = serve(builders.make_leaf(ca, names=NAMES, now=issued))
    refused = pytest.raises(ssl.SSLCertVerificationError, match="not yet valid")
    with contextlib.nullcontext() if accepted else refused:
        assert greet(port, name="localhost", ca=ca)[0] == b"hello"


def test_a_client_that_trusts_old_and_new_ca_accepts_leaves_of_both(serve, ca):
    """What a caBundle holds during a rotation."""
    new_ca = builders.make_ca(now=ISSUED)
    both = bundle.Pair(certificate=ca.certificate + new_ca.certificate, key=b"")
    for authority in (ca, new_ca):
        port = serve(builders.make_leaf(authority, names=NAMES, now=ISSUED))
        assert greet(port, name="localhost", ca=both)[0] == b"hello"
