"""Make certificates: a CA, and a leaf for the names that a server answers to.

Here: values in, PEM values out. Not here: judging existing certificates (`bundle`), files
(`files`), when to renew (`plan`). Time, keys and serial numbers come from the caller, so
the same call makes the same certificate, up to the random number inside an ECDSA signature. No I/O.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tfadmit_certs import bundle, fault, san

# How far the clock of an API server may lag behind ours. kubeadm and cert-manager allow 5 minutes.
CLOCK_SKEW = timedelta(minutes=5)
# Defaults of OPA's cert-controller; webhooks have lived with them for years.
CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)

# RFC 5280 appendix A, ub-common-name. Clients read the SAN; the common name is for people.
_MAX_COMMON_NAME = 64
_FALLBACK_COMMON_NAME = "tfadmit webhook"
# The CA/Browser Forum asks for 64 random bits, so that nobody can foretell a certificate's bytes.
_MIN_SERIAL_BITS = 64

_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


class IssueError(fault.CertsError):
    """A CA that cannot sign now."""


@dataclass(frozen=True, kw_only=True)
class Entropy:
    """Where keys and serial numbers come from: the system in earnest, fixed values in tests."""

    new_key: Callable[[], ec.EllipticCurvePrivateKey]
    new_serial: Callable[[], int]


def system_entropy() -> Entropy:
    """P-256 keys and 159-bit serials (the most that RFC 5280 allows) from the system's generator.

    P-256, because every API server takes it and a handshake costs a tenth of one with RSA.
    """
    return Entropy(
        new_key=lambda: ec.generate_private_key(ec.SECP256R1()),
        new_serial=x509.random_serial_number,
    )


def issue_ca(
    *,
    now: datetime,
    entropy: Entropy,
    lifetime: timedelta = CA_LIFETIME,
    label: str = "tfadmit CA",
    skew: timedelta = CLOCK_SKEW,
) -> bundle.Pair:
    """A new self-signed CA that signs leaves and no further CAs.

    The serial stands in its name: during a rotation two CAs are trusted at once, and clients that
    look an issuer up by name must not take one for the other. `skew` is how far it is backdated.
    """
    start, end = _window(now=now, lifetime=lifetime, skew=skew)
    key, serial = entropy.new_key(), _checked_serial(entropy.new_serial())
    name = _name(f"{label} {serial & (2**64 - 1):016x}")
    builder = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(start)
        .not_valid_after(end)
        # Path length 0: a stolen leaf key can never become a CA.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage("key_cert_sign", "crl_sign"), critical=True)
    )
    builder = _add_key_identifiers(builder, subject=key.public_key(), authority=_key_id(key))
    return _signed(builder, key=key, signing_key=key)


def issue_leaf(
    *,
    ca: bundle.Pair,
    names: san.Names,
    now: datetime,
    entropy: Entropy,
    lifetime: timedelta = LEAF_LIFETIME,
    skew: timedelta = CLOCK_SKEW,
) -> bundle.Pair:
    """A server certificate for `names`, signed by `ca`, with a key of its own.

    It is never valid outside its CA's time: `lifetime` is shortened when the CA ends earlier.

    Raises:
        IssueError: the CA has expired, is not valid yet, or is not a CA.
        bundle.BundleError: the CA's PEM is unreadable or its key is not its own.
    """
    if not names:
        raise ValueError("a leaf needs at least one name")
    authority = bundle.signer(ca)
    if problems := bundle.authority_problems(authority, now=now):
        raise IssueError("; ".join(problems))
    start, end = _window(now=now, lifetime=lifetime, skew=skew)
    key = entropy.new_key()
    builder = (
        x509.CertificateBuilder(subject_name=_leaf_name(names), issuer_name=authority.subject)
        .public_key(key.public_key())
        .serial_number(_checked_serial(entropy.new_serial()))
        .not_valid_before(max(start, authority.not_valid_before_utc))
        .not_valid_after(min(end, authority.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # An ECDSA key only ever signs in TLS; key encipherment belongs to RSA key exchange.
        .add_extension(_key_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        # Not critical, because the subject is not empty (RFC 5280 §4.2.1.6).
        .add_extension(_alternative_names(names), critical=False)
    )
    builder = _add_key_identifiers(
        builder, subject=key.public_key(), authority=_authority_id(authority)
    )
    return _signed(builder, key=key, signing_key=bundle.parse_key(ca.key))


def _window(*, now: datetime, lifetime: timedelta, skew: timedelta) -> tuple[datetime, datetime]:
    """First and last moment of validity, in whole seconds because X.509 knows no fractions."""
    if now.tzinfo is None:
        raise ValueError("`now` must carry a time zone: use datetime.now(timezone.utc)")
    if lifetime < timedelta(seconds=1):
        raise ValueError("`lifetime` must be at least a second")
    second = now.astimezone(timezone.utc).replace(microsecond=0)
    return second - skew, second + lifetime


def _checked_serial(serial: int) -> int:
    if serial.bit_length() < _MIN_SERIAL_BITS:
        raise ValueError(f"a serial needs {_MIN_SERIAL_BITS} bits or more: take it at random")
    return serial


def _name(common_name: str) -> x509.Name:
    short = common_name[:_MAX_COMMON_NAME]
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, short)])


def _leaf_name(names: san.Names) -> x509.Name:
    """The first name that fits; a cut name would be a wrong one."""
    candidates = (*names.dns, *map(str, names.ips), _FALLBACK_COMMON_NAME)
    return _name(next(name for name in candidates if len(name) <= _MAX_COMMON_NAME))


def _alternative_names(names: san.Names) -> x509.SubjectAlternativeName:
    general: Iterable[x509.GeneralName] = (
        *map(x509.DNSName, names.dns),
        *map(x509.IPAddress, names.ips),
    )
    return x509.SubjectAlternativeName(general)


def _key_usage(*granted: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in granted for usage in _USAGES})


def _add_key_identifiers(
    builder: x509.CertificateBuilder,
    *,
    subject: ec.EllipticCurvePublicKey,
    authority: x509.AuthorityKeyIdentifier,
) -> x509.CertificateBuilder:
    own = x509.SubjectKeyIdentifier.from_public_key(subject)
    return builder.add_extension(own, critical=False).add_extension(authority, critical=False)


def _key_id(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _authority_id(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """What the CA calls itself; a CA made elsewhere may hash its key in another way than we do."""
    try:
        own = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        public = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
        return x509.AuthorityKeyIdentifier(public.digest, None, None)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)


def _signed(
    builder: x509.CertificateBuilder,
    *,
    key: ec.EllipticCurvePrivateKey,
    signing_key: bundle.SigningKey,
) -> bundle.Pair:
    # Edwards curves fix their hash themselves.
    edwards = isinstance(signing_key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
    certificate = builder.sign(signing_key, None if edwards else hashes.SHA256())
    return bundle.Pair(certificate=bundle.render([certificate]), key=bundle.render_key(key))
