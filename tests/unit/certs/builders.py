"""Short builders for certificates with a fixed clock, and for odd ones that `issue` never makes."""

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tfadmit_certs import bundle, issue, san

# A fraction of a second on purpose: X.509 has none, and nothing may trip over that.
NOW = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)
SECOND = NOW.replace(microsecond=0)
DAY = timedelta(days=1)
ENTROPY = issue.system_entropy()


def make_names(*, dns: Iterable[str] = ("hook.team.svc",), ips: Iterable[str] = ()) -> san.Names:
    return san.check(dns=dns, ips=ips)


def make_ca(*, now=NOW, lifetime=100 * DAY) -> bundle.Pair:
    return issue.issue_ca(now=now, lifetime=lifetime, entropy=ENTROPY)


def make_leaf(ca, *, names=None, now=NOW, lifetime=10 * DAY) -> bundle.Pair:
    return issue.issue_leaf(
        ca=ca, names=names or make_names(), now=now, lifetime=lifetime, entropy=ENTROPY
    )


def parsed(pair: bundle.Pair) -> x509.Certificate:
    return bundle.parse(pair.certificate)[0]


def make_odd(*extensions, key=None, now=NOW) -> bundle.Pair:
    """A self-signed certificate with these (extension, critical) pairs and nothing else."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "odd")])
    builder = x509.CertificateBuilder(subject_name=name, issuer_name=name)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - DAY).not_valid_after(now + 100 * DAY)
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    digest = hashes.SHA256() if hasattr(key, "curve") or hasattr(key, "key_size") else None
    return bundle.Pair(
        certificate=bundle.render([builder.sign(key, digest)]), key=bundle.render_key(key)
    )
