"""TLS as the server speaks it."""

import pathlib
import socket
import ssl
import threading
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives import serialization

from tfadmit_certs import bundle
from tfadmit_webhook import tls
from unit.webhook import pairs


@pytest.fixture(scope="module")
def pair():
    return pairs.make()


def context(pair, **fields):
    return tls.server_context(**{"certificate": pair.certificate, "key": pair.key} | fields)


@contextmanager
def connected(server, *, ca, client=None, minimum=None, maximum=None, name="hook.team.svc"):
    """A TLS connection to a server with this context, over a pair of sockets; and what it saw."""
    asking = ssl.create_default_context(cadata=ca.decode())
    asking.minimum_version = minimum or ssl.TLSVersion.TLSv1_2
    asking.maximum_version = maximum or ssl.TLSVersion.MAXIMUM_SUPPORTED
    asking.set_alpn_protocols(["h2", "http/1.1"])
    if client:
        asking.load_cert_chain(client)
    ours, theirs = socket.socketpair()
    seen = []

    def serve():
        try:
            with server.wrap_socket(theirs, server_side=True) as wrapped:
                seen.append(wrapped.getpeercert())
                wrapped.send(b"x")
                wrapped.recv(1)
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with asking.wrap_socket(ours, server_hostname=name) as wrapped:
            yield wrapped, seen
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_current_protocols_are_spoken_without_http_2(pair, version):
    chosen = ssl.TLSVersion[version]
    with connected(context(pair), ca=pair.ca, minimum=chosen, maximum=chosen) as (connection, _):
        assert connection.version().replace(".", "_") == version
        assert connection.selected_alpn_protocol() == "http/1.1"
        assert connection.cipher()[0].startswith(("ECDHE", "TLS_"))
        assert not connection.session.has_ticket


def test_of_both_the_newer_one_is_taken(pair):
    with connected(context(pair), ca=pair.ca) as (connection, _):
        assert connection.version() == "TLSv1.3"


def test_no_key_is_written_anywhere_and_no_descriptor_stays(pair, monkeypatch):
    paths = []
    load = ssl.SSLContext.load_cert_chain

    def loading(self, path, **options):
        paths.append(str(pathlib.Path(path).readlink()))
        load(self, path, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", loading)
    before = list(pathlib.Path("/proc/self/fd").iterdir())
    for _ in range(20):
        context(pair)
    assert set(paths) == {"/memfd:tls (deleted)"}
    assert len(list(pathlib.Path("/proc/self/fd").iterdir())) == len(before)


def test_an_encrypted_key_is_refused_and_nobody_is_asked(pair):
    encrypted = bundle.parse_key(pair.key).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(tls.TlsFault, match="the key is encrypted: openssl pkey"):
        context(pair, key=encrypted)


def test_what_openssl_does_not_take_is_one_sentence(pair):
    with pytest.raises(tls.TlsFault, match="certificate and key cannot be used") as caught:
        context(pair, certificate=pairs.make().certificate)
    assert "\n" not in str(caught.value)


def test_a_client_may_come_without_a_certificate_or_with_one_that_is_trusted(pair, tmp_path):
    own = pairs.make_client("kube-apiserver")
    server = context(pair, client_ca=own.ca)
    with connected(server, ca=pair.ca) as (connection, seen):
        connection.recv(1)
        assert seen == [None]
    with connected(server, ca=pair.ca, client=own.write(tmp_path)) as (connection, seen):
        connection.recv(1)
        assert tls.common_name(seen[0]) == "kube-apiserver"


def test_a_client_with_a_certificate_of_another_ca_is_cut_off(pair, tmp_path):
    server = context(pair, client_ca=pairs.make().ca)
    stranger = pairs.make_client("stranger").write(tmp_path)
    with connected(server, ca=pair.ca, client=stranger) as (connection, seen):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            assert connection.recv(1) == b"x"
        assert seen == []


def test_cas_of_clients_that_cannot_be_read_are_named(pair):
    with pytest.raises(tls.TlsFault, match="--client-ca holds no readable PEM certificate"):
        context(pair, client_ca=b"broken")
