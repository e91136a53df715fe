"""Where data and results are: `s3://bucket/key` and its like, read and judged.

Pure. Whether something is there is not known here.
"""

import dataclasses
import re
import urllib.parse
from dataclasses import dataclass
from typing import Final

from tfadmit_transfer import fault

COPIED: Final = ("s3", "gs", "http", "https")
MOUNTED: Final = ("pvc", "file")
SCHEMES: Final = (*COPIED, *MOUNTED)
STORES: Final = ("s3", "gs", *MOUNTED)
"""Where results can be saved: nothing can be written by plain HTTP."""

_HTTP: Final = ("http", "https")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
# DNS label or subdomain, as Kubernetes wants the name of a claim.
_CLAIM = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SHA256 = re.compile(r"sha256=([0-9a-f]{64})")
_USER = re.compile(r"//[^/]*@")
_NEAR = {"gcs": "gs", "s3a": "s3", "s3n": "s3"}
_AZURE = (
    "tfadmit does not speak to Azure Blob Storage: mount the container as a volume and write "
    "pvc://claim/folder"
)
_ELSEWHERE = {
    **dict.fromkeys(("abfs", "abfss", "adl", "az", "azure", "wasb", "wasbs"), _AZURE),
    "hf": "Trainer's own initializer fetches it, or name the file by its https:// address",
    "hdfs": "copy it to an object store or a volume first",
    "git": "the code of a job is what `tfadmit run` packs",
}


@dataclass(frozen=True, kw_only=True)
class Uri:
    """An address of data, in its parts."""

    text: str
    """As it was written, without a password and without its checksum."""

    scheme: str
    host: str
    """Bucket, claim, or host and port; empty for `file`."""

    path: str
    """Key or path as it is there, without the slash before it; for HTTP as written, with query."""

    sha256: str = ""
    """What the one file at this address must have, if that was stated: `…#sha256=…`."""

    def __str__(self) -> str:
        """Write it as the user did."""
        return self.text

    @property
    def name(self) -> str:
        """The last part of the path, as the name of a file."""
        return _name(self.scheme, self.path)


def parse(text: str) -> Uri:
    """Read an address.

    Raises:
        RefusedError: it is none that can be used.
    """
    text = text.strip()
    found = _SCHEME.match(text)
    # A password stays out of all sentences.
    told = _USER.sub("//…@", text)
    if not found:
        raise fault.RefusedError(
            f"{told!r} is no address of data: write {_schemes()}, as in s3://bucket/folder"
        )
    scheme = found[1].lower()
    if scheme not in SCHEMES:
        raise fault.RefusedError(f"{told!r} has the scheme {scheme}: {_instead(scheme)}")
    body, _, fragment = text[found.end() :].partition("#")
    host, _, path = body.partition("/")
    sha256 = _checksum(told, fragment)
    host = host if scheme == "file" else _host(told, scheme, host)
    if scheme == "file":
        host, path = "", _node_path(told, host, path)
    _check_path(told, scheme, path)
    shown = f"{scheme}://{host}{'/' if scheme == 'file' or path else ''}{path}"
    if scheme not in _HTTP:
        path = path.replace("%23", "#")
    return Uri(text=shown, scheme=scheme, host=host, path=path, sha256=sha256)


def output(text: str) -> Uri:
    """Read the address under which results are saved.

    Raises:
        RefusedError: it is none, or nothing can be saved there.
    """
    found = parse(text)
    if found.scheme not in STORES:
        words = ", ".join(f"{scheme}://" for scheme in STORES)
        raise fault.RefusedError(f"{found}: results cannot be saved by {found.scheme}: use {words}")
    return found


def below(base: Uri, name: str) -> Uri:
    """Give the address of a folder below another."""
    path = "/".join(part for part in (base.path.strip("/"), name) if part)
    return dataclasses.replace(base, path=path, text=f"{base.text.rstrip('/')}/{name}")


def _check_path(text: str, scheme: str, path: str) -> None:
    # A question mark is part of a name where there are no queries.
    parts = (path.partition("?")[0] if scheme in _HTTP else path).split("/")
    if {".", ".."} & {*parts, _name(scheme, path)}:
        raise fault.RefusedError(f"{text!r} has . or .. in its path: write the path without it")
    if _CONTROL.search(text) or _CONTROL.search(_name(scheme, path)):
        raise fault.RefusedError(f"{text!r} has a control character: write the address without it")


def _name(scheme: str, path: str) -> str:
    """Give the last part of a path; escapes mean something in HTTP alone, also those of slashes."""
    if scheme in _HTTP:
        path = urllib.parse.unquote(path.partition("?")[0])
    return path.rstrip("/").rpartition("/")[2]


def _host(text: str, scheme: str, host: str) -> str:
    # First, so that no other sentence repeats it.
    if "@" in host:
        raise fault.RefusedError(
            f"{scheme}://…@{host.rpartition('@')[2]} carries a user or password, which everybody "
            "could read in the job: put it in a Secret and name that in tfadmit.dev/store-secret"
        )
    if scheme in ("s3", "gs") and not _BUCKET.fullmatch(host):
        raise fault.RefusedError(
            f"{text!r} names the bucket {host!r}: a bucket has 3 to 222 of a-z, 0-9, '-', '.' and "
            f"'_', as in {scheme}://bucket/folder"
        )
    if scheme == "pvc" and not _CLAIM.fullmatch(host):
        raise fault.RefusedError(
            f"{text!r} names the claim {host!r}: write the name of a PersistentVolumeClaim of the "
            "job's namespace, as in pvc://claim/folder"
        )
    if not host:
        raise fault.RefusedError(f"{text!r} names no host")
    return host


def _node_path(text: str, host: str, path: str) -> str:
    if host not in ("", "localhost"):
        raise fault.RefusedError(
            f"{text!r} names the host {host!r}: a path of the node has three slashes, "
            f"file:///{host}/{path}"
        )
    if not path.strip("/"):
        raise fault.RefusedError(f"{text!r} is the whole file system: name a folder in it")
    return path


def _checksum(text: str, fragment: str) -> str:
    if not fragment:
        return ""
    found = _SHA256.fullmatch(fragment)
    if not found:
        raise fault.RefusedError(
            f"{text!r}: what follows # must be sha256= and 64 digits of 0-9 and a-f; "
            "a # in a name is written %23"
        )
    return found[1]


def _instead(scheme: str) -> str:
    if scheme in _NEAR:
        return f"write {_NEAR[scheme]}://"
    return _ELSEWHERE.get(scheme, f"use {_schemes()}")


def _schemes() -> str:
    return ", ".join(f"{scheme}://" for scheme in SCHEMES)
