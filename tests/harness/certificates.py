"""Keys and certificates for tests, made by the shipped issuer.

So the API server and the upstream controllers trust, in every run, what users get from
`tfadmit certs issue`.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from tfadmit_certs import files, issue, san


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


def serving_certificate(
    *, directory: Path, host: str, also: Sequence[str] = ()
) -> ServingCertificate:
    """Write ``ca.crt``, ``tls.crt`` and ``tls.key`` for a server that is reached at ``host``.

    ``also`` are other names and addresses of the same server.
    """
    files.fulfil(
        files.Order(
            names=_names([host, *also]), lifetime=issue.LEAF_LIFETIME, ca_lifetime=issue.CA_LIFETIME
        ),
        directory=directory,
        now=datetime.now(timezone.utc),
        entropy=issue.system_entropy(),
    )
    return ServingCertificate(
        ca=directory / files.CA_CERTIFICATE,
        certificate=directory / files.CERTIFICATE,
        key=directory / files.KEY,
    )


def signing_key(path: Path) -> Path:
    """Write a private key with which service account tokens are signed."""
    key = issue.system_entropy().new_key()
    # As a public key file the API server reads "EC PRIVATE KEY", and not PKCS 8.
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return path


def _names(hosts: Sequence[str]) -> san.Names:
    ips = [host for host in hosts if _is_address(host)]
    return san.check(dns=[host for host in hosts if host not in ips], ips=ips)


def _is_address(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False
