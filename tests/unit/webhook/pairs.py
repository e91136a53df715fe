"""Certificates with their keys and CAs, by the shipped issuer, valid whenever a test likes."""

import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from tfadmit_certs import bundle, issue, san
from tfadmit_webhook import identity


@dataclass(frozen=True, kw_only=True)
class Pair:
    certificate: bytes
    key: bytes
    ca: bytes
    authority: bundle.Pair

    @property
    def serial(self):
        return bundle.describe(bundle.parse(self.certificate)[0]).serial

    @property
    def facts(self):
        return bundle.describe(bundle.parse(self.certificate)[0])

    def write(self, directory):
        """Certificate and key in one file, as clients load them."""
        path = directory / f"{self.serial}.pem"
        path.write_bytes(self.certificate + self.key)
        return path

    def offer(self, **fields):
        return identity.Offer(
            **{"certificate": self.certificate, "key": self.key, "ca": self.ca} | fields
        )


def make(*, dns="hook.team.svc", ip=None, now=None, authority=None, days=7):
    """A certificate that is issued at a time, of a new CA or of a given one."""
    now, entropy = now or datetime.now(timezone.utc), issue.system_entropy()
    authority = authority or issue.issue_ca(now=now, entropy=entropy)
    leaf = issue.issue_leaf(
        ca=authority,
        names=san.check(dns=[dns], ips=[ip] if ip else []),
        now=now,
        entropy=entropy,
        lifetime=timedelta(days=days),
    )
    return Pair(
        certificate=leaf.certificate, key=leaf.key, ca=authority.certificate, authority=authority
    )


def make_starting(moment):
    """A certificate that is valid from a moment on, however far the issuer backdates."""
    backdated = moment - make(now=moment).facts.not_before
    return make(now=moment + backdated)


def make_client(name, *, authority=None):
    """A client's certificate, which is none that the shipped issuer makes."""
    now, entropy = datetime.now(timezone.utc), issue.system_entropy()
    authority = authority or issue.issue_ca(now=now, entropy=entropy)
    issuer, key = bundle.parse(authority.certificate)[0], entropy.new_key()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(
                bundle.parse_key(authority.key).public_key()
            ),
            critical=False,
        )
        .sign(bundle.parse_key(authority.key), hashes.SHA256())
    )
    return Pair(
        certificate=bundle.render([certificate]),
        key=bundle.render_key(key),
        ca=authority.certificate,
        authority=authority,
    )


def set_times(path, like):
    """Give a file the times of another state of it."""
    os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))
