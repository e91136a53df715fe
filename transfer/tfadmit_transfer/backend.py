"""How a store is reached: obstore's stores with credentials, endpoints, time limits and retries.

S3 and what speaks its protocol, Google Cloud Storage, and folders (a mounted volume). What is asked
of them is for `store`.
"""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from obstore import store as obstore_store

from tfadmit_transfer import credential_faults, credentials, fault, uri

_CLIENT: Mapping[str, Any] = {
    "connect_timeout": "10s",
    # One part on a slow line: 8 MiB in two minutes are 70 KB a second.
    "read_timeout": "120s",
    # A whole download; what has stalled is found by the one above.
    "timeout": "12h",
}
_RETRY: Mapping[str, Any] = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
# Google takes one change of an object a second, and answers 429 to the next one.
_GS_RETRY: Mapping[str, Any] = {
    **_RETRY,
    "backoff": {
        "init_backoff": timedelta(seconds=1),
        "max_backoff": timedelta(seconds=15),
        "base": 2,
    },
}


def make(where: uri.Uri, *, environ: Mapping[str, str], mount: Path | None) -> Any:  # noqa: ANN401 - obstore's union of stores
    """Make what obstore asks; nothing is asked yet.

    Raises:
        RefusedError: its options make no sense.
        ValueError: obstore refuses an option; beside that its own exceptions.
        OSError: the folder cannot be made.
    """
    if where.scheme not in uri.MOUNTED:
        _check(where, environ)
    if where.scheme == "gs":
        return obstore_store.GCSStore(
            where.host,
            config=credentials.gs_options(environ),  # type: ignore[arg-type]
            client_options={
                **_client(environ, credentials.gs_endpoint(environ)),  # type: ignore[arg-type]
                # Else Google undoes gzip on the way, and nothing has the size of the listing.
                "default_headers": {"accept-encoding": "gzip"},
            },
            retry_config=_GS_RETRY,  # type: ignore[arg-type]
        )
    if where.scheme == "s3":
        options = credentials.s3_options(environ)
        return obstore_store.S3Store(
            where.host,
            config=options,  # type: ignore[arg-type]
            client_options=_client(environ, options.get("endpoint", "")),  # type: ignore[arg-type]
            retry_config=_RETRY,  # type: ignore[arg-type]
            checksum_algorithm="SHA256",
        )
    if mount is None and where.scheme == "pvc":
        raise fault.RefusedError(
            f"{where}: a claim can be read in the cluster only: mount it in a pod, copy from there"
        )
    return obstore_store.LocalStore(prefix=mount or Path("/", where.path), mkdir=True)


def _check(where: uri.Uri, environ: Mapping[str, str]) -> None:
    for words in credential_faults.mistakes(where, environ):
        raise fault.RefusedError(f"{where}: {words}")
    known = credentials.names(environ)
    for name in credential_faults.PATHS if where.scheme == "gs" else ():
        if path := known.get(name):
            content = _file(name, path, "a key in JSON").decode(errors="replace")
            if words := credential_faults.google_key(content, name=f"{name} ({path})"):
                raise fault.RefusedError(f"{where}: {words}")


def _file(name: str, path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise fault.RefusedError(
            f"{name} names {path}, which cannot be read ({error.strerror}): it is the path of a "
            f"file with {what}, where this runs"
        ) from error


def _client(environ: Mapping[str, str], endpoint: str) -> dict[str, Any]:
    options = {**_CLIENT, "allow_http": endpoint.startswith("http://")}
    if bundle := environ.get("AWS_CA_BUNDLE"):
        options["root_certificate"] = _file("AWS_CA_BUNDLE", bundle, "certificates")
    return options
