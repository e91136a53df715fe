"""Questions about certificates that exist."""

import base64
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519

from tfadmit_certs import bundle, fault, issue
from unit.certs import builders

TICK = timedelta(seconds=1)


@pytest.fixture(scope="module", name="ca")
def make_ca():
    return builders.make_ca()


@pytest.fixture(scope="module", name="leaf")
def make_leaf(ca):
    return builders.make_leaf(ca)


def problems(*, leaf, ca, now=builders.NOW):
    return bundle.chain_problems(leaf=leaf.certificate, ca=ca.certificate, now=now)


def test_a_bundle_survives_parsing_and_rendering(ca, leaf):
    both = leaf.certificate + ca.certificate
    assert bundle.render(bundle.parse(both)) == both


def test_text_around_the_certificates_does_no_harm(ca):
    assert bundle.parse(b"# my CA\n" + ca.certificate + b"\n\n") == bundle.parse(ca.certificate)


@pytest.mark.parametrize(
    "pem",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"hello", id="no PEM"),
        pytest.param(b"\xff\x00\x80", id="binary"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", id="no certificate"
        ),
        pytest.param(b"-----BEGIN CERTIFICATE-----\nMIIB", id="truncated"),
    ],
)
def test_unreadable_pem_is_one_error_that_names_the_source(pem):
    with pytest.raises(bundle.BundleError, match=r"^ca\.crt holds no readable PEM certificate"):
        bundle.parse(pem, where="ca.crt")
    with pytest.raises(bundle.BundleError, match=r"^ca\.key holds no readable PEM private key"):
        bundle.parse_key(pem, where="ca.key")


def test_a_certificate_is_not_taken_for_a_key_nor_the_reverse(ca):
    with pytest.raises(bundle.BundleError):
        bundle.parse(ca.key)
    with pytest.raises(bundle.BundleError):
        bundle.parse_key(ca.certificate)


def test_an_encrypted_key_is_refused_with_the_way_to_decrypt_it(ca):
    locked = bundle.parse_key(ca.key).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(bundle.BundleError, match="openssl pkey"):
        bundle.parse_key(locked)


def test_a_key_that_cannot_sign_is_refused():
    pem = x25519.X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(bundle.BundleError, match="cannot sign"):
        bundle.parse_key(pem)


def test_a_key_in_openssls_older_format_is_read(ca):
    key = bundle.parse_key(ca.key)
    older = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    assert bundle.key_matches(certificate=ca.certificate, key=older)


def test_a_key_matches_its_own_certificate_only(ca, leaf):
    assert bundle.key_matches(certificate=leaf.certificate, key=leaf.key)
    assert not bundle.key_matches(certificate=leaf.certificate, key=ca.key)


def test_a_served_chain_is_matched_by_its_first_certificate(ca, leaf):
    chain = leaf.certificate + ca.certificate
    assert bundle.key_matches(certificate=chain, key=leaf.key)
    assert not bundle.key_matches(certificate=chain, key=ca.key)


def test_the_signer_is_found_in_a_bundle_of_two_cas(ca):
    other = builders.make_ca()
    pair = bundle.Pair(certificate=other.certificate + ca.certificate, key=ca.key)
    assert bundle.signer(pair) == builders.parsed(ca)


def test_a_pair_without_a_signer_is_refused(ca, leaf):
    with pytest.raises(bundle.BundleError, match="the key does not belong to the certificate"):
        bundle.signer(bundle.Pair(certificate=ca.certificate, key=leaf.key))


def test_facts_of_a_leaf(ca):
    names = builders.make_names(dns=["a.team.svc", "*.b.svc"], ips=["10.0.0.1", "::1"])
    facts = bundle.describe(builders.parsed(builders.make_leaf(ca, names=names)))
    assert facts.alt_names == names
    assert facts.common_name == "a.team.svc"
    assert not facts.is_ca
    assert facts.not_before == builders.SECOND - timedelta(minutes=5)
    assert facts.not_after == builders.SECOND + 10 * builders.DAY


def test_facts_of_a_ca(ca):
    facts = bundle.describe(builders.parsed(ca))
    assert facts.is_ca
    assert len(facts.alt_names) == 0


def test_facts_of_a_bare_certificate_are_empty_not_an_error():
    facts = bundle.describe(builders.parsed(builders.make_odd()))
    assert not facts.is_ca
    assert len(facts.alt_names) == 0


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(-timedelta(minutes=5) - TICK, "not valid before", id="too early"),
        pytest.param(-timedelta(minutes=5), None, id="first second"),
        pytest.param(timedelta(0), None, id="now"),
        pytest.param(10 * builders.DAY, None, id="last second"),
        pytest.param(10 * builders.DAY + TICK, "expired on 2030-01-11 12:00:00 UTC", id="too late"),
    ],
)
def test_the_chain_holds_in_its_time_only(ca, leaf, offset, expected):
    found = problems(leaf=leaf, ca=ca, now=builders.SECOND + offset)
    assert bool(found) == bool(expected)
    assert expected is None or expected in found[0]


def test_a_leaf_of_another_ca_is_not_trusted(leaf):
    (problem,) = problems(leaf=leaf, ca=builders.make_ca())
    assert problem == "the certificate was signed by none of 1 CA(s)"


def test_a_forged_issuer_name_is_not_trusted(ca):
    """Same names, same serial, other key: only the signature tells."""
    serial = builders.parsed(ca).serial_number
    twin_entropy = issue.Entropy(new_key=builders.ENTROPY.new_key, new_serial=lambda: serial)
    twin = issue.issue_ca(now=builders.NOW, entropy=twin_entropy)
    assert builders.parsed(twin).subject == builders.parsed(ca).subject
    assert problems(leaf=builders.make_leaf(twin), ca=ca)


def test_old_and_new_leaves_are_trusted_while_two_cas_overlap(ca, leaf):
    new_ca = builders.make_ca()
    both = bundle.Pair(certificate=ca.certificate + new_ca.certificate, key=b"")
    assert problems(leaf=leaf, ca=both) == ()
    assert problems(leaf=builders.make_leaf(new_ca), ca=both) == ()


def test_all_faults_of_a_chain_are_reported_at_once(ca, leaf):
    found = problems(leaf=leaf, ca=ca, now=builders.NOW + 101 * builders.DAY)
    assert [p.split(" expired")[0] for p in found] == ["the certificate", "the CA certificate"]


USAGE_WITHOUT_SIGNING = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@pytest.mark.parametrize(
    ("extensions", "expected"),
    [
        pytest.param([], "CA:TRUE", id="no constraints"),
        pytest.param(
            [(x509.BasicConstraints(ca=False, path_length=None), True)], "CA:TRUE", id="not a CA"
        ),
        pytest.param(
            [
                (x509.BasicConstraints(ca=True, path_length=0), True),
                (USAGE_WITHOUT_SIGNING, True),
            ],
            "keyCertSign",
            id="may not sign",
        ),
    ],
)
def test_a_certificate_that_may_not_sign_is_no_authority(extensions, expected):
    odd = builders.parsed(builders.make_odd(*extensions))
    (problem,) = bundle.authority_problems(odd, now=builders.NOW)
    assert expected in problem


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(ec.generate_private_key(ec.SECP384R1()), id="P-384"),
        pytest.param(rsa.generate_private_key(65537, 2048), id="RSA"),
        pytest.param(ed25519.Ed25519PrivateKey.generate(), id="Ed25519"),
    ],
)
def test_a_ca_made_elsewhere_with_another_kind_of_key_signs(key):
    constraints = (x509.BasicConstraints(ca=True, path_length=None), True)
    foreign = builders.make_odd(constraints, key=key)
    assert problems(leaf=builders.make_leaf(foreign), ca=foreign) == ()


def test_the_ca_bundle_is_the_pem_in_base64_on_one_line(ca):
    value = bundle.ca_bundle(ca.certificate)
    assert base64.b64decode(value, validate=True) == ca.certificate
    assert "\n" not in value


def test_a_key_never_shows_in_a_repr(ca):
    assert "PRIVATE" not in repr(ca)


def test_errors_are_for_people():
    assert issubclass(bundle.BundleError, fault.CertsError)
