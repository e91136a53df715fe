"""Service accounts of a cloud of the tests' own: their keys, and who signed a token.

A client signs a token itself and sends it with each request (https://google.aip.dev/auth/4111).
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import dataclass, field

from cryptography import exceptions
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_known: dict[str, Account] = {}


@dataclass(frozen=True, kw_only=True)
class Account:
    """A service account."""

    email: str
    key: str = field(repr=False)
    """The JSON that `gcloud iam service-accounts keys create` writes."""
    public: rsa.RSAPublicKey = field(repr=False)


def account(name: str, *, known: bool = True) -> Account:
    """Make an account with a key; one that is not `known` has a key that was deleted."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    email, number = f"{name}@testing.iam.gserviceaccount.com", secrets.token_hex(20)
    content = {
        "type": "service_account",
        "project_id": "testing",
        "private_key_id": number,
        "private_key": pem.decode(),
        "client_email": email,
        "client_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    made = Account(email=email, key=json.dumps(content), public=private.public_key())
    if known:
        _known[number] = made
    return made


def who(token: str) -> str:
    """Name the account that signed a token; empty when none did, or it is no longer valid."""
    try:
        head, claims, signature = token.split(".")
        found = _known[json.loads(_decoded(head))["kid"]]
        told = json.loads(_decoded(claims))
        found.public.verify(
            _decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
    except (ValueError, KeyError, exceptions.InvalidSignature):
        return ""
    rights = told["iss"] == told["sub"] == found.email and _SCOPE in told["scope"].split()
    timely = told["iat"] - 60 <= time.time() < told["exp"] <= told["iat"] + 3600
    return found.email if rights and timely else ""


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
