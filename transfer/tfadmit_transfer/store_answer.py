"""What an object store's refusal means: from the text of an error to a fault with a sentence. Pure.

obstore tells most things in text: the HTTP status, and the answer's XML with a code and a message.
Servers differ: an unknown key is 403 for S3 and 404 for some that speak its protocol, so the code
decides and not the status alone.
"""

import re
from collections.abc import Mapping
from typing import Final

from tfadmit_transfer import credentials, fault, uri

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
# XML of S3, JSON of Google.
_SAID: Final = re.compile(r"<Message>([^<]*)</Message>|\"message\": ?\"([^\"]*)\"")
_STATUS: Final = re.compile(r"status code: (\d{3})")
# What says that an object is not there; every other 404 is about something else.
_ABSENT: Final = frozenset({"", "NoSuchKey", "NoSuchVersion", "NotFound"})
# Too slow, too early, too many: the moment passes.
_PASSING: Final = ("408", "409", "425", "429")

# Where a store looks for credentials of the machine or the pod when the environment has none. All
# other answers come from a server that was shown some.
_LOOKED_UP: Final = re.compile(r"https?://169\.254\.|/computeMetadata/v1/")
# Of names that obstore cannot handle: a//b, a/../b, and x#1 in a folder.
_NAMES: Final = ("object with invalid path", "Filenames containing")
# https://docs.cloud.google.com/storage/docs/transcoding
_NO_LENGTH: Final = "Content-Length Header missing"


class AbsentError(fault.RefusedError):
    """There is no such object."""


def line(error: BaseException) -> str:
    """Give the first line of an error; obstore's have a debug output below it."""
    return str(error).partition("\n")[0]


def unusable(
    error: BaseException, *, where: uri.Uri, environ: Mapping[str, str], mend: str
) -> fault.RefusedError:
    """Say why a store cannot be opened, before anything was asked of it."""
    words = line(error)
    unset = "Missing" in words or credentials.emptied(where, environ)
    if unset and (lacking := credentials.missing(where, environ)):
        return fault.RefusedError(f"{where}: {_lacking(lacking, where, mend)}")
    return fault.RefusedError(f"{where}: what is set for this store cannot be used ({words})")


def fault_of(
    error: BaseException, *, name: str, where: uri.Uri, environ: Mapping[str, str], mend: str
) -> fault.TransferError:
    """Say what an error means, with the address, the credential, and what mends a lacking one."""
    text = str(error)
    code, status = _group(_CODE, text), _group(_STATUS, text)
    first = line(error)
    said = f"{code or status or 'denied'}: {_group(_SAID, text) or first}"
    absent = isinstance(error, FileNotFoundError) or status == "404"
    if words := _special(first, text, code=code, name=name, where=where):
        return fault.RefusedError(f"{name}: {words}")
    odd = isinstance(error, ValueError) or any(words in text for words in _NAMES)
    unasked = status in ("401", "403") and credentials.emptied(where, environ)
    if (_LOOKED_UP.search(first) or unasked) and (lacking := credentials.missing(where, environ)):
        return fault.RefusedError(f"{name}: {_lacking(lacking, where, mend)}")
    if absent and code in _ABSENT:
        return AbsentError(f"{name}: there is nothing")
    if absent or status in ("401", "403") or isinstance(error, PermissionError):
        used = credentials.used(where, environ)
        return fault.RefusedError(
            f"{name}: no access with {used} ({said}): check that it is the right one, and its "
            "rights in the store"
        )
    if odd or (status[:1] == "4" and status not in _PASSING):
        return fault.RefusedError(f"{name}: the store refuses this ({said})")
    return fault.PassingError(f"{name}: {_reason(first, text, code=code, status=status)}")


def _special(first: str, text: str, *, code: str, name: str, where: uri.Uri) -> str:
    """Say what is wrong for the few answers that mean one thing only; else empty."""
    if code == "NoSuchBucket" or "bucket does not exist" in text:
        bucket = f"{where.scheme}://{where.host}"
        return f"the bucket {bucket} does not exist: create it, or name another"
    if where.scheme == "gs" and _NO_LENGTH in first:
        return (
            "it is stored with Content-Encoding: gzip, and Google sends it without a length: "
            f"`gcloud storage objects update {name} --clear-content-encoding` makes it a plain file"
        )
    return ""


def _lacking(lacking: str, where: uri.Uri, mend: str) -> str:
    public = "AWS_SKIP_SIGNATURE" if where.scheme == "s3" else "GOOGLE_SKIP_SIGNATURE"
    return (
        f"no credentials: {lacking} not set, and no service account gives any: {mend}; a public "
        f"bucket needs {public}=true"
    )


def _reason(first: str, text: str, *, code: str, status: str) -> str:
    if status:
        return f"the store has a fault ({code or status})"
    if "dns error" in text:
        return "the name of the store is not known (DNS)"
    if "ConnectionRefused" in text or "tcp connect error" in text:
        return "the store cannot be reached"
    if "TimedOut" in text or "timed out" in text:
        return "the store did not answer in time"
    return f"the connection failed ({first.rpartition(' - ')[2]})"


def _group(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return next(filter(None, found.groups()), "") if found else ""
