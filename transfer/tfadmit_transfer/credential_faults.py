"""What is wrong with the words that open a store, before they are used. Pure.

obstore would say it less well: it panics at an endpoint without a scheme and at a line break in a
key, and repeats a key that stands where the path of a file should. No sentence has a value of a
credential.
"""

import json
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tfadmit_transfer import credentials, uri

_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "GOOGLE_BASE_URL")
# They become headers of a request.
_HEADERS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
)
KEY: Final = "GOOGLE_SERVICE_ACCOUNT_KEY"
PATHS: Final = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS")
# What obstore can use of what Google calls application default credentials.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "service_account": ("private_key", "private_key_id", "client_email"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
}


def mistakes(where: uri.Uri, environ: Mapping[str, str]) -> Iterator[str]:
    """Tell what of an environment cannot open a store."""
    known = credentials.names(environ)
    ours = "AWS_" if where.scheme == "s3" else "GOOGLE_"
    for name in _ENDPOINTS:
        if name.startswith(ours) and known.get(name) and not _is_address(known[name]):
            yield (
                f"{name} is {known[name]!r}, which is no address of a server: write it as "
                "https://store.example.com or http://minio.storage:9000"
            )
    for name in _HEADERS:
        value = known.get(name, "")
        if name.startswith(ours) and not (value.isascii() and value.isprintable()):
            yield f"{name} has a character that no key has, such as a line break: write it anew"
    if where.scheme == "gs":
        yield from _google(known)


def google_key(content: str, *, name: str) -> str:
    """Say why a text is no key that Google gives out; empty when it is one."""
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return f"{name} is no JSON of a key: write it as Google gave it, whole"
    kind = found.get("type", "service_account")
    if kind == "external_account":
        return (
            f"{name} is of the type external_account, which tfadmit cannot use: take the key of a "
            "service account, or workload identity of the cluster"
        )
    if not isinstance(kind, str) or kind not in _FIELDS:
        return f"{name} is no key of a service account: its type is another"
    lacking = [field for field in _FIELDS[kind] if not isinstance(found.get(field), str)]
    return f"{name} is no whole key: it lacks {', '.join(lacking)}" if lacking else ""


def _google(known: Mapping[str, str]) -> Iterator[str]:
    for name in PATHS:
        if known.get(name, "").startswith("{"):
            yield f"{name} is the path of a file, and has its content: name that {KEY}"
    if known.get(KEY) and (words := google_key(known[KEY], name=KEY)):
        yield words
    elif (server := credentials.gs_endpoint(known)) and not _is_address(server):
        yield f"the server of {KEY} or GOOGLE_BASE_URL is no address: write https://…"


def _is_address(text: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
