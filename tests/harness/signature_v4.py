"""Requests to an S3 server, signed by hand (Signature Version 4 in headers).

For what obstore cannot ask: keys that end at a slash, and requests that came in another protocol.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import urllib.parse
from collections.abc import Mapping, Sequence

REGION = "us-east-1"
# What stays as it is in a canonical path or query.
_PLAIN = "-_.~"


def path(key: str) -> str:
    """Write `/bucket/key` as it is asked for and signed."""
    return urllib.parse.quote(key, safe=f"/{_PLAIN}")


def query(pairs: Sequence[tuple[str, str]]) -> str:
    """Write a query as it is asked for and signed."""
    return "&".join(
        f"{urllib.parse.quote(name, safe=_PLAIN)}={urllib.parse.quote(value, safe=_PLAIN)}"
        for name, value in sorted(pairs)
    )


def headers(
    method: str,
    target: str,
    *,
    host: str,
    access_key: str,
    secret_key: str,
    body: bytes = b"",
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Give the headers of a request; `target` is a path and perhaps a query of the above."""
    now = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    content = hashlib.sha256(body).hexdigest()
    known = {"host": host, "x-amz-content-sha256": content, "x-amz-date": now, **(more or {})}
    names = ";".join(sorted(known))
    listed = "".join(f"{name}:{known[name]}\n" for name in sorted(known))
    where, _, asked = target.partition("?")
    canonical = f"{method}\n{where}\n{asked}\n{listed}\n{names}\n{content}"
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signing = f"AWS4{secret_key}".encode()
    for word in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"):
        signing = hmac.digest(signing, word.encode(), "sha256")
    stated = f"Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signing.hex()}"
    return {**known, "authorization": f"AWS4-HMAC-SHA256 {stated}"}
