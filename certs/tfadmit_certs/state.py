"""What the two Secrets say, as frozen values; and what is written into them.

Here: a Secret's object to `Authority` and `Leaf`, where anything that cannot be used is a value
with a reason and never an exception. Not here: dates judged against now and what to do (`plan`),
talking to the API server (`secret`). No I/O.
"""

import base64
import binascii
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from tfadmit_certs import bundle, hooks
from tfadmit_certs.names import Which

CA_CERTIFICATE, CA_KEY = "ca.crt", "ca.key"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
RETIRED_CERTIFICATES = "retired.crt"
CERTIFICATE, KEY = "tls.crt", "tls.key"

RETIRED_UNTIL = "tfadmit.dev/retired-until"
ALIVE_UNTIL = "tfadmit.dev/alive-until"
ROTATE = "tfadmit.dev/rotate"
_CERT_MANAGER = "cert-manager.io/certificate-name"


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why something cannot be used: a word for metrics and a sentence for people."""

    reason: Literal["missing", "unreadable", "mismatched", "not-a-ca", "encrypted"]
    text: str


@dataclass(frozen=True, kw_only=True)
class Signer:
    """A CA: its certificates, and the pair that signs unless there is some trouble."""

    certificates: tuple[bundle.Certificate, ...] = ()
    certificate: bundle.Certificate | None = None
    pair: bundle.Pair | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True, kw_only=True)
class Authority:
    """The Secret of the CA."""

    version: str
    current: Signer
    next: Signer | None = None
    retired: tuple[bundle.Certificate, ...] = ()
    retired_trouble: Trouble | None = None
    retired_until: datetime | None = None
    asked: bool = False
    """Whether a person asked for a rotation of the CA."""

    refusal: str = ""
    """Why this Secret must not be written, and what to do; empty when it may."""

    @property
    def trusted(self) -> tuple[bundle.Certificate, ...]:
        """All that a caBundle holds, each once: current, next, retired.

        In an order of their own, so that a CA which only changes its part changes no caBundle.
        """
        following = self.next.certificates if self.next else ()
        every = {*self.current.certificates, *following, *self.retired}
        return tuple(
            sorted(every, key=lambda item: (item.not_valid_before_utc, bundle.fingerprint(item)))
        )

    @property
    def pem(self) -> bytes:
        """The caBundle."""
        return bundle.render(self.trusted)


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """The Secret of the leaf."""

    version: str
    certificate: bundle.Certificate | None = None
    trouble: Trouble | None = None
    copy: bytes = b""
    """The bundle as it stands beside the leaf."""

    alive_until: datetime | None = None
    """When the last of all leaves that this Secret ever held ends."""

    asked: bool = False
    """Whether a person asked for a new leaf."""

    refusal: str = ""
    """As for the CA."""


@dataclass(frozen=True, kw_only=True)
class View:
    """All that a decision is made from, as it was at one look."""

    authority: Authority | None = None
    leaf: Leaf | None = None
    configurations: tuple[hooks.Configuration, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Write:
    """A change of one Secret. `version` is the one that was read; None creates it.

    A value of None removes its entry; what is not named stays as it is.
    """

    which: Which
    version: str | None
    data: Mapping[str, bytes | None] = field(repr=False)
    annotations: Mapping[str, str | None] = field(default_factory=dict)


def read_authority(item: Mapping[str, Any], *, label: str) -> Authority:
    """The Secret of the CA out of the API server's object; `label` is its namespace and name."""
    data, annotations = _data(item), _annotations(item)
    current = _signer(data, CA_CERTIFICATE, CA_KEY, label=label)
    has_next = NEXT_CERTIFICATE in data or NEXT_KEY in data
    retired = bundle.parse_readable(data.get(RETIRED_CERTIFICATES, b""))
    return Authority(
        version=_version(item),
        current=current,
        next=_signer(data, NEXT_CERTIFICATE, NEXT_KEY, label=label) if has_next else None,
        retired=_authorities(retired),
        retired_trouble=_retired_trouble(data, retired, label=label),
        retired_until=read_moment(annotations.get(RETIRED_UNTIL)),
        asked=annotations.get(ROTATE) == "ca",
        refusal=_refusal(item, label=label) or _foreign_ca(data, current, label=label),
    )


def read_leaf(item: Mapping[str, Any], *, label: str) -> Leaf:
    """The Secret of the leaf out of the API server's object; `label` is its namespace and name."""
    data, annotations = _data(item), _annotations(item)
    certificate, trouble = _leaf(data, label=label)
    return Leaf(
        version=_version(item),
        certificate=certificate,
        trouble=trouble,
        copy=data.get(CA_CERTIFICATE, b""),
        alive_until=read_moment(annotations.get(ALIVE_UNTIL)),
        asked=annotations.get(ROTATE) == "leaf",
        refusal=_refusal(item, label=label),
    )


def show_moment(moment: datetime) -> str:
    """A moment as it stands in an annotation: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _signer(data: Mapping[str, bytes], crt: str, key: str, *, label: str) -> Signer:
    certificates = bundle.parse_readable(data.get(crt, b""))
    known = _authorities(certificates)
    if not data.get(crt) or not data.get(key):
        missing = " and ".join(name for name in (crt, key) if not data.get(name))
        return Signer(
            certificates=known,
            trouble=Trouble(reason="missing", text=f"Secret {label} has no {missing}"),
        )
    pair = bundle.Pair(certificate=data[crt], key=data[key])
    where = {"certificate": f"{crt} of Secret {label}", "key": f"{key} of Secret {label}"}
    try:
        bundle.parse_key(pair.key, where=where["key"])
        if not certificates:
            bundle.parse(pair.certificate, where=where["certificate"])
    except bundle.EncryptedKeyError as error:
        return Signer(certificates=known, trouble=Trouble(reason="encrypted", text=str(error)))
    except bundle.BundleError as error:
        return Signer(certificates=known, trouble=Trouble(reason="unreadable", text=str(error)))
    return _matched(pair, certificates, where=where)


def _matched(
    pair: bundle.Pair, certificates: tuple[bundle.Certificate, ...], *, where: Mapping[str, str]
) -> Signer:
    readable = bundle.Pair(certificate=bundle.render(certificates), key=pair.key)
    try:
        signer = bundle.signer(readable, **where)
    except bundle.BundleError as error:
        trouble = Trouble(reason="mismatched", text=str(error))
        return Signer(certificates=_authorities(certificates), trouble=trouble)
    # At the middle of its life, so that only what is wrong at any date is found.
    middle = signer.not_valid_before_utc + (
        (signer.not_valid_after_utc - signer.not_valid_before_utc) / 2
    )
    if problems := _problems(signer, at=middle):
        text = f"{where['certificate']}: {'; '.join(problems)}"
        trouble = Trouble(reason="not-a-ca", text=text)
        return Signer(certificates=_authorities(certificates), trouble=trouble)
    return Signer(certificates=_authorities(certificates), certificate=signer, pair=readable)


def _authorities(certificates: tuple[bundle.Certificate, ...]) -> tuple[bundle.Certificate, ...]:
    return tuple(item for item in certificates if bundle.is_authority(item))


def _problems(certificate: bundle.Certificate, *, at: datetime) -> tuple[str, ...]:
    try:
        return bundle.authority_problems(certificate, now=at)
    except bundle.BundleError as error:
        return (str(error),)


def _leaf(
    data: Mapping[str, bytes], *, label: str
) -> tuple[bundle.Certificate | None, Trouble | None]:
    crt, key = data.get(CERTIFICATE), data.get(KEY)
    if not crt or not key:
        missing = " and ".join(name for name in (CERTIFICATE, KEY) if not data.get(name))
        return None, Trouble(reason="missing", text=f"Secret {label} has no {missing}")
    try:
        certificate = bundle.parse(crt, where=f"{CERTIFICATE} of Secret {label}")[0]
        bundle.describe(certificate)
        if bundle.key_matches(certificate=crt, key=key):
            return certificate, None
    except bundle.BundleError as error:
        return None, Trouble(reason="unreadable", text=str(error))
    text = f"{KEY} of Secret {label} does not belong to its {CERTIFICATE}"
    return None, Trouble(reason="mismatched", text=text)


def _retired_trouble(
    data: Mapping[str, bytes], found: tuple[bundle.Certificate, ...], *, label: str
) -> Trouble | None:
    stated = data.get(RETIRED_CERTIFICATES)
    if stated is None or bundle.render(found) == stated:
        return None
    text = f"{RETIRED_CERTIFICATES} of Secret {label} is not what was written"
    return Trouble(reason="unreadable", text=text)


def _refusal(item: Mapping[str, Any], *, label: str) -> str:
    namespace, _, name = label.partition("/")
    if item.get("immutable") is True:
        return (
            f"Secret {label} is immutable: kubectl -n {namespace} delete secret {name}, "
            "and a new one is made"
        )
    if _CERT_MANAGER in _annotations(item):
        return (
            f"Secret {label} is written by cert-manager: delete its Certificate and the Secret, "
            "or install the overlay cert-manager, which has no tfadmit-certs"
        )
    return ""


def _foreign_ca(data: Mapping[str, bytes], current: Signer, *, label: str) -> str:
    """Why a CA that a person put there is not thrown away, and how it can be used."""
    namespace, _, name = label.partition("/")
    if current.trouble and current.trouble.reason == "encrypted":
        return f"{current.trouble.text}; or delete the Secret, and a CA is made"
    if CERTIFICATE in data and CA_CERTIFICATE not in data:
        return (
            f"Secret {label} holds {CERTIFICATE} and {KEY} where {CA_CERTIFICATE} and {CA_KEY} are "
            f"looked for: kubectl -n {namespace} delete secret {name}, then kubectl -n {namespace} "
            f"create secret generic {name} --from-file=ca.crt=FILE --from-file=ca.key=FILE, "
            "or leave it deleted, and a CA is made"
        )
    return ""


def _data(item: Mapping[str, Any]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, value in _mapping(item.get("data")).items():
        with contextlib.suppress(binascii.Error, ValueError):
            found[name] = base64.b64decode(value or "")
    return found


def _annotations(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(item.get("metadata")).get("annotations"))


def _version(item: Mapping[str, Any]) -> str:
    return str(_mapping(item.get("metadata")).get("resourceVersion", ""))


def read_moment(text: object) -> datetime | None:
    """A moment out of an annotation, as `show_moment` writes it; None when it is none."""
    try:
        moment = datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007 - UTC is next
    except ValueError:
        return None
    return moment.replace(tzinfo=timezone.utc)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
