"""What the certificates say, as parsed again, and when they verify."""

import ipaddress
from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, SignatureAlgorithmOID

from tfadmit_certs import bundle, issue, san
from unit.certs import builders

NAMES = builders.make_names(
    dns=["hook.team.svc", "*.wild.team.svc", "bücher.example"], ips=["10.1.2.3", "::1"]
)
SKEW = timedelta(minutes=5)
TICK = timedelta(seconds=1)


@pytest.fixture(scope="module", name="ca")
def make_ca():
    return builders.make_ca()


@pytest.fixture(scope="module", name="leaf")
def make_leaf(ca):
    return builders.make_leaf(ca, names=NAMES)


def extension(pair, kind):
    found = builders.parsed(pair).extensions.get_extension_for_class(kind)
    return found.value, found.critical


def granted(usage):
    names = [n for n in issue._USAGES if n not in {"encipher_only", "decipher_only"}]
    return {name for name in names if getattr(usage, name)}


def verify(*, leaf, ca, subject, when):
    policy = verification.PolicyBuilder().store(verification.Store([*bundle.parse(ca.certificate)]))
    verifier = policy.time(when).build_server_verifier(subject)
    return verifier.verify(builders.parsed(leaf), [])


def test_a_ca_signs_leaves_and_nothing_below(ca):
    assert extension(ca, x509.BasicConstraints) == (
        x509.BasicConstraints(ca=True, path_length=0),
        True,
    )
    usage, critical = extension(ca, x509.KeyUsage)
    assert (granted(usage), critical) == ({"key_cert_sign", "crl_sign"}, True)


def test_a_leaf_is_a_tls_server_and_nothing_else(leaf):
    assert extension(leaf, x509.BasicConstraints) == (
        x509.BasicConstraints(ca=False, path_length=None),
        True,
    )
    usage, critical = extension(leaf, x509.KeyUsage)
    assert (granted(usage), critical) == ({"digital_signature"}, True)
    purposes, critical = extension(leaf, x509.ExtendedKeyUsage)
    assert (list(purposes), critical) == ([ExtendedKeyUsageOID.SERVER_AUTH], False)


def test_a_leaf_carries_all_names(leaf):
    names, critical = extension(leaf, x509.SubjectAlternativeName)
    assert names.get_values_for_type(x509.DNSName) == [
        "hook.team.svc",
        "*.wild.team.svc",
        "xn--bcher-kva.example",
    ]
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address("10.1.2.3"),
        ipaddress.ip_address("::1"),
    ]
    assert not critical


def test_key_identifiers_link_leaf_and_ca(ca, leaf):
    ca_id, ca_critical = extension(ca, x509.SubjectKeyIdentifier)
    leaf_id, leaf_critical = extension(leaf, x509.SubjectKeyIdentifier)
    assert not ca_critical
    assert not leaf_critical
    assert ca_id.digest != leaf_id.digest
    for pair in (ca, leaf):
        issuer, critical = extension(pair, x509.AuthorityKeyIdentifier)
        assert (issuer.key_identifier, critical) == (ca_id.digest, False)
        assert issuer.authority_cert_issuer is None


def test_there_is_no_extension_beyond_these(ca, leaf):
    assert len(builders.parsed(ca).extensions) == 4
    assert len(builders.parsed(leaf).extensions) == 6


@pytest.mark.parametrize("kind", ["ca", "leaf"])
def test_keys_are_p256_and_signatures_sha256(request, kind):
    pair = request.getfixturevalue(kind)
    certificate = builders.parsed(pair)
    public = certificate.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert public.curve.name == "secp256r1"
    assert isinstance(certificate.signature_hash_algorithm, hashes.SHA256)
    assert certificate.signature_algorithm_oid == SignatureAlgorithmOID.ECDSA_WITH_SHA256
    assert certificate.version is x509.Version.v3
    assert pair.key.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert bundle.key_matches(certificate=pair.certificate, key=pair.key)


def test_serials_are_random_and_long():
    serials = {builders.parsed(builders.make_ca()).serial_number for _ in range(20)}
    assert len(serials) == 20
    # 159 random bits: that the largest of 20 has under 144 is as likely as 2 to the power of -300.
    assert 144 < max(serial.bit_length() for serial in serials) <= 159


def test_two_cas_have_different_names():
    first, second = (builders.parsed(builders.make_ca()) for _ in range(2))
    assert first.subject != second.subject


def test_the_serial_comes_from_the_caller(ca):
    entropy = issue.Entropy(new_key=builders.ENTROPY.new_key, new_serial=lambda: 2**100 + 7)
    own_ca = issue.issue_ca(now=builders.NOW, entropy=entropy)
    leaf = issue.issue_leaf(ca=ca, names=NAMES, now=builders.NOW, entropy=entropy)
    assert builders.parsed(own_ca).serial_number == 2**100 + 7
    assert builders.parsed(leaf).serial_number == 2**100 + 7


def test_a_short_serial_is_misuse():
    entropy = issue.Entropy(new_key=builders.ENTROPY.new_key, new_serial=lambda: 1)
    with pytest.raises(ValueError, match="64 bits"):
        issue.issue_ca(now=builders.NOW, entropy=entropy)


@pytest.mark.parametrize("kind", ["ca", "leaf"])
def test_validity_starts_five_minutes_early_and_ends_after_the_lifetime(request, kind):
    certificate = builders.parsed(request.getfixturevalue(kind))
    days = {"ca": 100, "leaf": 10}[kind]
    assert certificate.not_valid_before_utc == builders.SECOND - SKEW
    assert certificate.not_valid_after_utc == builders.SECOND + days * builders.DAY


def test_a_clock_in_another_zone_means_the_same_moment(ca):
    tokyo = builders.NOW.astimezone(timezone(timedelta(hours=9)))
    certificate = builders.parsed(builders.make_leaf(ca, now=tokyo))
    assert certificate.not_valid_before_utc == builders.SECOND - SKEW


def test_a_leaf_never_outlives_its_ca(ca):
    leaf = builders.make_leaf(ca, lifetime=1000 * builders.DAY)
    assert (
        builders.parsed(leaf).not_valid_after_utc
        == builders.parsed(ca).not_valid_after_utc
        == builders.SECOND + 100 * builders.DAY
    )


def test_a_leaf_never_starts_before_its_ca(ca):
    """The clock went back three minutes between the two."""
    leaf = builders.make_leaf(ca, now=builders.NOW - timedelta(minutes=3))
    assert builders.parsed(leaf).not_valid_before_utc == builders.SECOND - SKEW


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(100 * builders.DAY + TICK, "expired", id="expired"),
        pytest.param(-SKEW - TICK, "not valid before", id="not yet valid"),
    ],
)
def test_a_ca_out_of_its_time_signs_nothing(ca, offset, expected):
    with pytest.raises(issue.IssueError, match=expected):
        builders.make_leaf(ca, now=builders.NOW + offset)


def test_a_leaf_cannot_sign(ca, leaf):
    with pytest.raises(issue.IssueError, match="CA:TRUE"):
        builders.make_leaf(leaf)


def test_a_ca_with_a_foreign_key_is_refused(ca, leaf):
    with pytest.raises(bundle.BundleError, match="does not belong"):
        builders.make_leaf(bundle.Pair(certificate=ca.certificate, key=leaf.key))


@pytest.mark.parametrize(
    ("now", "lifetime"),
    [
        pytest.param(datetime(2030, 1, 1), builders.DAY, id="naive clock"),  # noqa: DTZ001
        pytest.param(builders.NOW, timedelta(0), id="no lifetime"),
        pytest.param(builders.NOW, -builders.DAY, id="negative lifetime"),
    ],
)
def test_misuse_of_times_is_a_value_error(now, lifetime):
    with pytest.raises(ValueError, match=r"now|lifetime"):
        builders.make_ca(now=now, lifetime=lifetime)


def test_a_leaf_without_a_name_is_misuse(ca):
    with pytest.raises(ValueError, match="at least one name"):
        issue.issue_leaf(ca=ca, names=san.Names(), now=builders.NOW, entropy=builders.ENTROPY)


@pytest.mark.parametrize(
    ("dns", "ips", "expected"),
    [
        pytest.param(["b.svc", "a.svc"], ["::1"], "b.svc", id="first name"),
        pytest.param(["a" * 60 + ".svc"], [], "a" * 60 + ".svc", id="64 characters fit"),
        pytest.param(["a" * 61 + ".svc", "b.svc"], [], "b.svc", id="65 do not: the next one"),
        pytest.param(["a" * 61 + ".svc"], [], "tfadmit webhook", id="none fits"),
        pytest.param([], ["2001:db8::1"], "2001:db8::1", id="only an address"),
    ],
)
def test_the_common_name_is_whole_and_within_64_characters(ca, dns, ips, expected):
    leaf = builders.make_leaf(ca, names=builders.make_names(dns=dns, ips=ips))
    facts = bundle.describe(builders.parsed(leaf))
    assert facts.common_name == expected
    assert facts.alt_names.dns == tuple(dns)


def test_a_long_label_of_a_ca_is_cut():
    ca = issue.issue_ca(now=builders.NOW, entropy=builders.ENTROPY, label="x" * 100)
    assert len(bundle.describe(builders.parsed(ca)).common_name) == 64


@pytest.mark.parametrize(
    ("subject", "offset"),
    [
        (x509.DNSName("hook.team.svc"), timedelta(0)),
        (x509.DNSName("hook.team.svc"), -SKEW),
        (x509.DNSName("hook.team.svc"), 10 * builders.DAY),
        (x509.DNSName("any.wild.team.svc"), timedelta(0)),
        (x509.IPAddress(ipaddress.ip_address("10.1.2.3")), timedelta(0)),
        (x509.IPAddress(ipaddress.ip_address("::1")), timedelta(0)),
    ],
    ids=["now", "first second", "last second", "wildcard", "IPv4", "IPv6"],
)
def test_a_strict_verifier_accepts_the_leaf(ca, leaf, subject, offset):
    chain = verify(leaf=leaf, ca=ca, subject=subject, when=builders.SECOND + offset)
    assert chain == [builders.parsed(leaf), builders.parsed(ca)]


@pytest.mark.parametrize(
    ("subject", "offset"),
    [
        (x509.DNSName("other.team.svc"), timedelta(0)),
        (x509.DNSName("a.b.wild.team.svc"), timedelta(0)),
        (x509.IPAddress(ipaddress.ip_address("10.1.2.4")), timedelta(0)),
        (x509.DNSName("hook.team.svc"), -SKEW - TICK),
        (x509.DNSName("hook.team.svc"), 10 * builders.DAY + TICK),
    ],
    ids=["other name", "two labels under a wildcard", "other address", "too early", "too late"],
)
def test_a_strict_verifier_refuses_the_leaf(ca, leaf, subject, offset):
    with pytest.raises(verification.VerificationError):
        verify(leaf=leaf, ca=ca, subject=subject, when=builders.SECOND + offset)


def test_a_ca_rebuilt_from_pem_signs_a_new_leaf(ca):
    rebuilt = bundle.Pair(certificate=bytes(ca.certificate), key=bytes(ca.key))
    later = builders.NOW + 50 * builders.DAY
    leaf = builders.make_leaf(rebuilt, now=later)
    verify(leaf=leaf, ca=ca, subject=x509.DNSName("hook.team.svc"), when=later)


def test_the_right_ca_of_an_overlapping_bundle_signs(ca):
    other = builders.make_ca()
    both = bundle.Pair(certificate=other.certificate + ca.certificate, key=ca.key)
    leaf = builders.make_leaf(both)
    verify(leaf=leaf, ca=ca, subject=x509.DNSName("hook.team.svc"), when=builders.NOW)


def test_the_identifier_of_a_ca_made_elsewhere_is_copied():
    constraints = (x509.BasicConstraints(ca=True, path_length=None), True)
    foreign = builders.make_odd(constraints, (x509.SubjectKeyIdentifier(b"own way"), False))
    issuer, _ = extension(builders.make_leaf(foreign), x509.AuthorityKeyIdentifier)
    assert issuer.key_identifier == b"own way"
