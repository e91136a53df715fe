"""Keys and certificates for tests only: a fresh authority each time, valid for a week."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class ServingCertificate:
    """Files of one server, under the names that Kubernetes uses in a TLS secret."""

    ca: Path
    certificate: Path
    key: Path

    @property
    def directory(self) -> Path:
        """Where ``tls.crt`` and ``tls.key`` lie."""
        return self.certificate.parent


def serving_certificate(*, directory: Path, host: str) -> ServingCertificate:
    """Write ``ca.crt``, ``tls.crt`` and ``tls.key`` for a server that is reached at ``host``."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = _name("tfadmit test authority")
    authority = _builder(
        subject=ca_name, issuer=ca_name, public_key=ca_key.public_key(), is_ca=True
    )
    leaf = (
        _builder(subject=_name(host), issuer=ca_name, public_key=key.public_key(), is_ca=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        # Python 3.13 refuses a leaf without it.
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )

    directory.mkdir(parents=True, exist_ok=True)
    files = ServingCertificate(
        ca=directory / "ca.crt", certificate=directory / "tls.crt", key=directory / "tls.key"
    )
    pem = serialization.Encoding.PEM
    files.ca.write_bytes(authority.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    files.certificate.write_bytes(leaf.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    files.key.write_bytes(_key_pem(key))
    return files


def signing_key(path: Path) -> Path:
    """Write a private key with which service account tokens are signed."""
    path.write_bytes(_key_pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def _builder(
    *, subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, is_ca: bool
) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # Clocks of containers and virtual machines differ by seconds.
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(
            x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True
        )
        .add_extension(_usage(signs_certificates=is_ca), critical=True)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        # The API server reads "EC PRIVATE KEY"; so does everything else.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
