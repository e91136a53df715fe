"""Where the results of a job are, and with what they can be read.

In this order: what the user says, what the job's objects say, what the namespace's runtimes say
(the job may be deleted). Credentials: those of the environment, else the job's Secret, where the
user may read it.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.jobs import find as jobs_find
from tfadmit_client.jobs import read
from tfadmit_client.logs import saved_logs
from tfadmit_client.watch import detail
from tfadmit_trainer import contract
from tfadmit_transfer import credentials, uri
from tfadmit_transfer import fault as transfer_fault
from tfadmit_webhook import raw

_SECRET = listing.Kind(name="Secret", group="", version="v1")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where results are."""

    bases: tuple[str, ...]
    """The addresses below which they may be, the likeliest first."""

    environ: Mapping[str, str] = field(repr=False)
    """The environment with which they are read."""

    note: str = ""
    """What the user should know when that fails."""


def find(cluster: read.Cluster, *, namespace: str, name: str, environ: Mapping[str, str]) -> Place:
    """Ask the cluster where a job's results are.

    Raises:
        ClientError: nothing tells.
        UnreachableError: nobody answers.
    """
    reading = read.one(cluster, namespace=namespace, name=name)
    if not reading.jobs:
        bases = saved_logs.bases(cluster, namespace=namespace)
        if not bases:
            raise jobs_find.absent(cluster, namespace=namespace, name=name)
        return Place(bases=tuple(bases), environ=environ)
    notes = detail.annotations(reading.jobs[0])
    base = notes.get(contract.OUTPUT_ANNOTATION, "")
    if not base:
        raise fault.ClientError(
            f"{name} saves nothing: it has no annotation {contract.OUTPUT_ANNOTATION}; "
            "`tfadmit run --output URI` sets it; --from URI names another place"
        )
    secret = notes.get(contract.STORE_SECRET_ANNOTATION, "")
    return readable(cluster, namespace=namespace, secret=secret, base=base, environ=environ)


def readable(
    cluster: read.Cluster,
    *,
    namespace: str,
    secret: str,
    base: str,
    environ: Mapping[str, str],
) -> Place:
    """Give an address with credentials: the user's own, else those of a Secret of the namespace."""
    if not secret or _has_own(base, environ):
        return Place(bases=(base,), environ=environ)
    return _with_secret(cluster, namespace, secret, base=base, environ=environ)


def _has_own(base: str, environ: Mapping[str, str]) -> bool:
    """Whether the user has credentials for this kind of store; those for another are no help."""
    try:
        return credentials.stated(uri.parse(base), environ)
    except transfer_fault.RefusedError:
        return False


def _with_secret(
    cluster: read.Cluster,
    namespace: str,
    secret: str,
    *,
    base: str,
    environ: Mapping[str, str],
) -> Place:
    """Take the credentials of the job; a user who may not read them has to have some himself."""
    try:
        found = cluster.get(_SECRET, namespace=namespace, name=secret)
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        return Place(bases=(base,), environ=environ, note=str(error))
    if found is None:
        note = f"the job's Secret {secret} is not in namespace {namespace}"
        return Place(bases=(base,), environ=environ, note=note)
    return Place(bases=(base,), environ={**environ, **_decoded(found)})


def _decoded(secret: raw.JsonObject) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in raw.strings(secret.get("data")).items():
        try:
            found[name] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError):  # noqa: PERF203 - a handful of keys
            continue  # a file, and no word for an environment
    return found
