"""Which words of the environment open a store, and what to say when none does. Pure.

The names are those of the stores' own tools; those of Trainer's initializers are taken too, so that
a Secret that serves there serves here.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from tfadmit_transfer import uri

IN_POD: Final = (
    "put it into a Secret and name that in the annotation tfadmit.dev/store-secret, or give the "
    "pod a service account with access"
)
BY_HAND: Final = "set it in your environment"
"""What mends a lacking credential: in a pod, and where a person calls."""

# Trainer's initializers (pkg/initializers) and the standard name that means the same.
_TRAINER: Final = {
    "ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "ENDPOINT": "AWS_ENDPOINT_URL",
    "REGION": "AWS_REGION",
    "ROLE_ARN": "AWS_ROLE_ARN",
}
_OPTIONS: Final = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_ENDPOINT_URL_S3": "endpoint",
    "AWS_REGION": "region",
    "AWS_DEFAULT_REGION": "default_region",
    "AWS_SKIP_SIGNATURE": "skip_signature",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "virtual_hosted_style_request",
}
_GS_OPTIONS: Final = {
    "GOOGLE_SERVICE_ACCOUNT_KEY": "service_account_key",
    "GOOGLE_SERVICE_ACCOUNT": "service_account",
    "GOOGLE_APPLICATION_CREDENTIALS": "application_credentials",
    "GOOGLE_BASE_URL": "base_url",
    "GOOGLE_SKIP_SIGNATURE": "skip_signature",
}
_S3_WAYS: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_SKIP_SIGNATURE",
)
_GS_WAYS: Final = (
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SKIP_SIGNATURE",
)


def names(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the environment with Trainer's names as the standard ones, where those are not set.

    Without the line break at the end that a Secret has which was made of a file or by `echo`.
    """
    known = {name: value.strip() for name, value in environ.items()}
    more = {
        standard: known[name]
        for name, standard in _TRAINER.items()
        if known.get(name) and not known.get(standard)
    }
    return {**known, **more}


def s3_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the options of an S3 store; what is not here it finds itself, as a service account."""
    known = names(environ)
    return {option: known[name] for name, option in _OPTIONS.items() if known.get(name)}


def gs_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the options of a Google store; without any it asks the metadata server of the node."""
    known = names(environ)
    return {option: known[name] for name, option in _GS_OPTIONS.items() if known.get(name)}


def gs_endpoint(environ: Mapping[str, str]) -> str:
    """Give the server that is asked in place of Google's; empty for none.

    A service account's key may name it, too.
    """
    if stated := environ.get("GOOGLE_BASE_URL", "").strip():
        return stated
    try:
        found = json.loads(environ.get("GOOGLE_SERVICE_ACCOUNT_KEY") or "{}").get("gcs_base_url")
    except (ValueError, AttributeError):
        return ""
    return found if isinstance(found, str) else ""


def stated(where: uri.Uri, environ: Mapping[str, str]) -> bool:
    """Whether an environment has a credential for this very kind of store."""
    known = names(environ)
    return any(known.get(name) for name in _ways(where))


def missing(where: uri.Uri, environ: Mapping[str, str]) -> str:
    """Name the credential that a store would have wanted; empty when there was one."""
    known = names(environ)
    if where.scheme == "s3" and not any(known.get(name) for name in _S3_WAYS):
        return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if where.scheme == "s3" and known.get("AWS_ACCESS_KEY_ID"):
        return "" if known.get("AWS_SECRET_ACCESS_KEY") else "AWS_SECRET_ACCESS_KEY"
    if where.scheme == "gs" and not any(known.get(name) for name in _GS_WAYS):
        return "GOOGLE_SERVICE_ACCOUNT_KEY"
    return ""


def emptied(where: uri.Uri, environ: Mapping[str, str]) -> bool:
    """Whether a credential is set to nothing: obstore takes that for one and asks nobody else."""
    known = names(environ)
    return any(known.get(name) == "" for name in _ways(where))


def used(where: uri.Uri, environ: Mapping[str, str]) -> str:
    """Name the credential that was used, without its value."""
    known = names(environ)
    return next(
        (name for name in _ways(where) if known.get(name)), "the service account of the pod"
    )


def _ways(where: uri.Uri) -> Sequence[str]:
    return {"s3": _S3_WAYS, "gs": _GS_WAYS}.get(where.scheme, ())
