"""Certificates and keys as PEM: parse, format, describe, and check that they fit together.

Here: questions about certificates that exist. Not here: making new ones (`issue`), files (`files`).
The current time is an argument. No I/O.
"""

import base64
import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import NameOID

from tfadmit_certs import fault, san

SigningKey = (
    ec.EllipticCurvePrivateKey
    | rsa.RSAPrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)
# The name for modules that pass certificates on and must not know the library.
Certificate = x509.Certificate

_BLOCK = re.compile(
    rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----", flags=re.MULTILINE
)

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class BundleError(fault.CertsError):
    """PEM that cannot be read, or a key that does not belong to its certificate."""


class EncryptedKeyError(BundleError):
    """A private key under a password, which only a person can have made."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Certificates and the key of one of them, as PEM. The key never shows in a repr or a log."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What people and later decisions want to know about one certificate; times are UTC."""

    common_name: str
    serial: int
    not_before: datetime
    not_after: datetime
    is_ca: bool
    alt_names: san.Names


def parse(pem: bytes, *, where: str = "the certificate") -> tuple[x509.Certificate, ...]:
    """All certificates of a PEM bundle, at least one; `where` names the source in errors."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError as error:
        message = f"{where} holds no readable PEM certificate ({_first_sentence(error)})"
        raise BundleError(message) from error


def parse_readable(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Every certificate in `pem` that can be read, each once; what cannot be read is left out."""
    found: dict[x509.Certificate, None] = {}
    for block in _BLOCK.findall(pem):
        with contextlib.suppress(ValueError):
            found[x509.load_pem_x509_certificate(block)] = None
    return tuple(found)


def render(certificates: Iterable[x509.Certificate]) -> bytes:
    """The certificates as one PEM bundle, in the given order."""
    return b"".join(c.public_bytes(serialization.Encoding.PEM) for c in certificates)


def parse_key(pem: bytes, *, where: str = "the key") -> SigningKey:
    """The private key; it must be unencrypted and of a kind that signs."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        message = f"{where} is encrypted. Decrypt it first: openssl pkey -in FILE -out FILE"
        raise EncryptedKeyError(message) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        message = f"{where} holds no readable PEM private key ({_first_sentence(error)})"
        raise BundleError(message) from error
    if not isinstance(key, SigningKey):
        raise BundleError(f"{where} cannot sign. Use an ECDSA, RSA or Ed25519 key")
    return key


def render_key(key: SigningKey) -> bytes:
    """The private key as unencrypted PKCS#8 PEM, which every TLS server reads."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def key_matches(*, certificate: bytes, key: bytes) -> bool:
    """Does the key belong to the first certificate, the one that a TLS server presents?"""
    return _public(parse_key(key)) == _public(parse(certificate)[0])


def signer(
    pair: Pair, *, certificate: str = "the certificate", key: str = "the key"
) -> x509.Certificate:
    """The certificate of the pair that its key belongs to.

    A CA file may hold several certificates while old and new overlap; one key signs. `certificate`
    and `key` name the sources in errors.
    """
    wanted = _public(parse_key(pair.key, where=key))
    for candidate in parse(pair.certificate, where=certificate):
        if _public(candidate) == wanted:
            return candidate
    raise BundleError(f"{key} does not belong to {certificate}")


def fingerprint(certificate: x509.Certificate) -> str:
    """The SHA-256 of the certificate, in hexadecimal: the same for the same bytes only."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Did the key of `authority` sign `certificate`, under its name?"""
    try:
        certificate.verify_directly_issued_by(authority)
    # Another name, an odd key or signature, another key.
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature):
        return False
    return True


def is_authority(certificate: x509.Certificate) -> bool:
    """Is this the certificate of a CA, whatever the date?"""
    try:
        return _is_ca(certificate)
    except BundleError:
        return False


def describe(certificate: x509.Certificate) -> Facts:
    """The facts of one certificate; names that it does not have are empty."""
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Facts(
        common_name=str(common[0].value) if common else "",
        serial=certificate.serial_number,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        is_ca=_is_ca(certificate),
        alt_names=_alt_names(certificate),
    )


def authority_problems(certificate: x509.Certificate, *, now: datetime) -> tuple[str, ...]:
    """Why `certificate` cannot act as a CA at `now`, one sentence each; empty when it can."""
    problems = list(_window_problems(certificate, what="the CA certificate", now=now))
    if not _is_ca(certificate):
        problems.append("the certificate is not one of a CA (basicConstraints lacks CA:TRUE)")
    usage = _extension(certificate, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        problems.append("the CA certificate may not sign (keyUsage lacks keyCertSign)")
    return tuple(problems)


def chain_problems(*, leaf: bytes, ca: bytes, now: datetime) -> tuple[str, ...]:
    """Why a client that trusts `ca` refuses `leaf` at `now`, one sentence each; empty when it fits.

    `ca` may be a bundle: one CA that signed the leaf is enough, as for the API server. Names are
    not compared; `Facts.alt_names` has them.
    """
    certificate = parse(leaf)[0]
    problems = _window_problems(certificate, what="the certificate", now=now)
    authorities = parse(ca, where="the CA bundle")
    issuers = [authority for authority in authorities if is_issuer(authority, certificate)]
    if not issuers:
        return (*problems, f"the certificate was signed by none of {len(authorities)} CA(s)")
    return (*problems, *min((authority_problems(a, now=now) for a in issuers), key=len))


def ca_bundle(pem: bytes) -> str:
    """The value of `caBundle` in a webhook configuration: base64 of the PEM, on one line."""
    return base64.b64encode(pem).decode("ascii")


def show_time(moment: datetime) -> str:
    """A moment for people, in UTC to the second, because certificates know no more."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _window_problems(certificate: x509.Certificate, *, what: str, now: datetime) -> tuple[str, ...]:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        return (f"{what} is not valid before {show_time(start)}; now it is {show_time(now)}",)
    if now > end:
        return (f"{what} expired on {show_time(end)}; now it is {show_time(now)}",)
    return ()


def _is_ca(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _alt_names(certificate: x509.Certificate) -> san.Names:
    names = _extension(certificate, x509.SubjectAlternativeName)
    if names is None:
        return san.Names()
    ips = names.get_values_for_type(x509.IPAddress)
    return san.Names(
        dns=tuple(names.get_values_for_type(x509.DNSName)),
        ips=tuple(ip for ip in ips if isinstance(ip, san.IPAddress)),
    )


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except ValueError as error:  # the library parses extensions only when asked for them
        raise BundleError(f"a certificate has unreadable extensions ({error})") from error


def _public(holder: x509.Certificate | SigningKey) -> bytes:
    """The public key in its one canonical encoding, so that two can be compared."""
    try:
        public = holder.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BundleError(f"a certificate has an unusable public key ({error})") from error
    return public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _first_sentence(error: Exception) -> str:
    """The library's reason without the link to its documentation that follows."""
    return str(error).split(". ", maxsplit=1)[0].rstrip(".")
