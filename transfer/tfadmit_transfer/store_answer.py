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

# Of names that obstore cannot handle: a//b, a/../b, and x#1 in a folder.
_NAMES: Final = ("object with invalid path", "Filenames containing")


class AbsentError(fault.RefusedError):
    """There is no such object."""


def fault_of(
    error: Exception, *, name: str, where: uri.Uri, environ: Mapping[str, str], mend: str
) -> fault.TransferError:
    """Say what an error means, with the address, the credential, and what mends a lacking one."""
    text = str(error)
    code, status = _group(_CODE, text), _group(_STATUS, text)
    line = text.partition("\n")[0]
    said = f"{code or status or 'denied'}: {_group(_SAID, text) or line}"
    absent = isinstance(error, FileNotFoundError) or status == "404"
    if code == "NoSuchBucket" or "bucket does not exist" in text:
        bucket = f"{where.scheme}://{where.host}"
        return fault.RefusedError(
            f"{name}: the bucket {bucket} does not exist: create it, or name another"
        )
    odd = isinstance(error, ValueError) or any(words in text for words in _NAMES)
    if (
        not (absent or odd)
        and (lacking := credentials.missing(where, environ))
        and _asks(text, status)
    ):
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
    return fault.PassingError(f"{name}: {_reason(line, text, code=code, status=status)}")


def _asks(text: str, status: str) -> bool:
    """Whether the answer is about credentials, or comes from where a store looks for them."""
    return status in ("401", "403", "") or "169.254." in text or "metadata" in text


def _lacking(lacking: str, where: uri.Uri, mend: str) -> str:
    public = "; a public bucket needs AWS_SKIP_SIGNATURE=true" if where.scheme == "s3" else ""
    return f"no credentials: {lacking} not set, and no service account gives any: {mend}{public}"


def _reason(line: str, text: str, *, code: str, status: str) -> str:
    if status:
        return f"the store has a fault ({code or status})"
    if "dns error" in text:
        return "the name of the store is not known (DNS)"
    if "ConnectionRefused" in text or "tcp connect error" in text:
        return "the store cannot be reached"
    if "TimedOut" in text or "timed out" in text:
        return "the store did not answer in time"
    return f"the connection failed ({line.rpartition(' - ')[2]})"


def _group(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return next(filter(None, found.groups()), "") if found else ""
