"""The server's certificate: read before anybody connects, exchanged while the server runs."""

import socket
import ssl
import threading
from contextlib import contextmanager
from datetime import datetime, timezone

import pytest
from cryptography.hazmat.primitives import serialization

from tfadmit_certs import bundle, issue, san
from tfadmit_webhook import tls


def make_files(directory, *, dns="hook.team.svc"):
    """Files of a new CA and of a certificate that it signed."""
    directory.mkdir(exist_ok=True)
    now, entropy = datetime.now(timezone.utc), issue.system_entropy()
    ca = issue.issue_ca(now=now, entropy=entropy)
    leaf = issue.issue_leaf(ca=ca, names=san.check(dns=[dns]), now=now, entropy=entropy)
    (directory / "ca.crt").write_bytes(ca.certificate)
    (directory / "tls.crt").write_bytes(leaf.certificate)
    (directory / "tls.key").write_bytes(leaf.key)
    return directory


def load(directory, *, key=None):
    return tls.load(certificate=directory / "tls.crt", key=key or directory / "tls.key")


@pytest.fixture
def files(tmp_path):
    return make_files(tmp_path / "one")


@contextmanager
def connected(context, *, ca, minimum=None, maximum=None, name="hook.team.svc"):
    """A TLS connection to a server with this context, over a pair of sockets."""
    client = ssl.create_default_context(cafile=ca)
    client.minimum_version = minimum or ssl.TLSVersion.TLSv1_2
    client.maximum_version = maximum or ssl.TLSVersion.MAXIMUM_SUPPORTED
    client.set_alpn_protocols(["h2", "http/1.1"])
    ours, theirs = socket.socketpair()

    def serve():
        try:
            with context.wrap_socket(theirs, server_side=True) as wrapped:
                wrapped.recv(1)
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=name) as wrapped:
            yield wrapped
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_both_current_protocols_are_spoken_without_http_2(files, version):
    chosen = ssl.TLSVersion[version]
    with connected(load(files), ca=files / "ca.crt", minimum=chosen, maximum=chosen) as connection:
        assert connection.version().replace(".", "_") == version
        assert connection.selected_alpn_protocol() == "http/1.1"
        assert connection.cipher()[0].startswith(("ECDHE", "TLS_"))
        assert not connection.session.has_ticket


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
def test_a_missing_file_is_named_with_its_option(files, name):
    (files / name).unlink()
    option = "--tls-cert" if name == "tls.crt" else "--tls-key"
    with pytest.raises(tls.TlsFault, match=f"{option} .*{name}: No such file or directory"):
        load(files)


def test_a_directory_is_no_file(files):
    with pytest.raises(tls.TlsFault, match="Is a directory"):
        load(files, key=files)


def test_a_key_of_another_certificate_is_refused(files, tmp_path):
    other = make_files(tmp_path / "two")
    with pytest.raises(tls.TlsFault, match=r"two/tls\.key does not belong to --tls-cert .*one"):
        load(files, key=other / "tls.key")


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
@pytest.mark.parametrize("content", [b"", b"no certificate", b"\x30\x82\x01"])
def test_what_is_no_pem_is_named(files, name, content):
    (files / name).write_bytes(content)
    with pytest.raises(tls.TlsFault, match=f"{name}: is no PEM file"):
        load(files)


def test_a_damaged_certificate_is_one_sentence(files):
    text = (files / "tls.crt").read_text()
    (files / "tls.crt").write_text(text.replace("MII", "MIX"))
    with pytest.raises(tls.TlsFault) as caught:
        load(files)
    assert "\n" not in str(caught.value)


def test_an_encrypted_key_is_refused_and_nobody_is_asked(files):
    key = bundle.parse_key((files / "tls.key").read_bytes())
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (files / "tls.key").write_bytes(encrypted)
    with pytest.raises(tls.TlsFault, match="the key is encrypted: openssl pkey"):
        load(files)


def test_a_new_certificate_is_shown_from_the_next_handshake_on(files, tmp_path):
    other = make_files(tmp_path / "two")
    identity = tls.Identity(load(files))
    listener = identity.context
    with connected(listener, ca=files / "ca.crt") as before:
        identity.exchange(load(other))
        assert identity.context is listener
        with connected(listener, ca=other / "ca.crt") as after:
            assert after.getpeercert(binary_form=True) != before.getpeercert(binary_form=True)
    with pytest.raises(ssl.SSLCertVerificationError), connected(listener, ca=files / "ca.crt"):
        pass


def test_a_client_that_names_no_server_gets_the_new_certificate_too(files, tmp_path):
    other = make_files(tmp_path / "two")
    identity = tls.Identity(load(files))
    identity.exchange(load(other))
    client = ssl.create_default_context(cafile=other / "ca.crt")
    client.check_hostname = False
    ours, theirs = socket.socketpair()
    thread = threading.Thread(
        target=lambda: identity.context.wrap_socket(theirs, server_side=True).close()
    )
    thread.start()
    with client.wrap_socket(ours) as connection:
        assert connection.getpeercert()
    thread.join()
