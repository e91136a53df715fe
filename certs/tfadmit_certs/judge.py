"""What dates make of the state: whether a CA can sign, whether a leaf lives, which phase it is.

Here: questions with the time as an argument. Not here: what to do about the answers (`plan`). No
I/O.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tfadmit_certs import bundle, san
from tfadmit_certs.lifetimes import Lifetimes
from tfadmit_certs.state import Authority, Leaf, Signer, View

Phase = Literal["steady", "publish", "settle", "promote", "reissue", "retire"]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why something is to be done: a word for metrics and a sentence for people."""

    word: str
    text: str


def unusable(signer: Signer | None, *, what: str, now: datetime) -> Reason | None:
    """Why this CA will never sign again; None when it can, or will when its time has begun."""
    if signer is None:
        return Reason(word="missing", text=f"there is no {what}")
    if signer.trouble:
        return Reason(word=signer.trouble.reason, text=signer.trouble.text)
    if signer.certificate and signer.certificate.not_valid_after_utc <= now:
        end = bundle.show_time(signer.certificate.not_valid_after_utc)
        return Reason(word="expired", text=f"the {what} expired on {end}")
    return None


def early(certificate: bundle.Certificate | None, *, now: datetime) -> bool:
    """Is it from the future? Either this clock is behind or the one that made it was ahead."""
    return certificate is not None and now < certificate.not_valid_before_utc


def issuers(
    certificate: bundle.Certificate | None, among: tuple[bundle.Certificate, ...]
) -> tuple[bundle.Certificate, ...]:
    """Which of these CAs signed the leaf."""
    if certificate is None:
        return ()
    return tuple(item for item in among if bundle.is_issuer(item, certificate))


def alive(leaf: Leaf | None, *, now: datetime) -> bool:
    """May servers live by this leaf? Also by one from the future: their clocks may be right."""
    if leaf is None or leaf.certificate is None or leaf.trouble:
        return False
    return now < leaf.certificate.not_valid_after_utc


def alive_until(leaf: Leaf | None) -> datetime | None:
    """When the last leaf ends that servers can have from this Secret; None when unknown."""
    if leaf is None:
        return None
    own = leaf.certificate.not_valid_after_utc if leaf.certificate else None
    moments = [moment for moment in (own, leaf.alive_until) if moment]
    return max(moments, default=None)


def leaf_due(view: View, *, names: san.Names, lifetimes: Lifetimes, now: datetime) -> Reason | None:
    """Why a new leaf is needed; None when the one that is there will do."""
    leaf, authority = view.leaf, view.authority
    if leaf is None or authority is None:
        return Reason(word="missing", text="there is no leaf")
    if leaf.trouble or leaf.certificate is None:
        trouble = leaf.trouble
        return Reason(
            word=trouble.reason if trouble else "missing", text=str(trouble and trouble.text)
        )
    signer = authority.current.certificate
    if signer is None or not bundle.is_issuer(signer, leaf.certificate):
        return Reason(word="reissue", text="the leaf is not signed by the current CA")
    return next(_leaf_reasons(leaf, leaf.certificate, signer, names, lifetimes, now), None)


def _leaf_reasons(
    leaf: Leaf,
    certificate: bundle.Certificate,
    signer: bundle.Certificate,
    names: san.Names,
    lifetimes: Lifetimes,
    now: datetime,
) -> Iterator[Reason]:
    end = certificate.not_valid_after_utc
    if end <= now:
        yield Reason(word="expired", text=f"the leaf expired on {bundle.show_time(end)}")
    if early(certificate, now=now):
        yield Reason(word="early", text=_early("leaf", certificate, now=now))
    if missing := _missing_names(certificate, names):
        yield Reason(word="names", text=f"the leaf does not stand for {missing}")
    if leaf.asked:
        yield Reason(word="asked", text="a new leaf was asked for")
    # Nothing is gained while the CA ends with the leaf: the rotation of the CA is due then.
    gains = min(now + lifetimes.leaf, signer.not_valid_after_utc) > end
    if now >= end - lifetimes.leaf_renew_before and gains:
        yield Reason(word="due", text=f"the leaf ends on {bundle.show_time(end)}")


def _missing_names(certificate: bundle.Certificate, names: san.Names) -> str:
    held = bundle.describe(certificate).alt_names
    dns = [name for name in names.dns if name not in held.dns]
    return ", ".join((*dns, *(str(ip) for ip in names.ips if ip not in held.ips)))


def rotation_due(authority: Authority, *, lifetimes: Lifetimes, now: datetime) -> Reason | None:
    """Why the CA is to be replaced by way of a rotation; None when it is not."""
    certificate = authority.current.certificate
    if certificate is None:
        return None
    if authority.asked:
        return Reason(word="asked", text="a rotation of the CA was asked for")
    if early(certificate, now=now):
        return Reason(word="early", text=_early("CA", certificate, now=now))
    end = certificate.not_valid_after_utc
    if now >= end - lifetimes.ca_renew_before:
        return Reason(word="due", text=f"the CA ends on {bundle.show_time(end)}")
    return None


def retired_end(authority: Authority, *, lifetimes: Lifetimes) -> datetime | None:
    """When no server can live by a retired CA any more, by the slowest clock; None without one."""
    if not authority.retired:
        return None
    last = max(item.not_valid_after_utc for item in authority.retired)
    stated = authority.retired_until
    return min(last, stated + lifetimes.clock_skew) if stated else last


def phase(view: View) -> Phase:
    """Where a rotation stands. `promote` takes no time, so that nobody ever sees it."""
    authority, leaf = view.authority, view.leaf
    if authority is None:
        return "publish"
    pem = authority.pem
    published = not any(item.lacks(pem) for item in view.configurations)
    if not published:
        return "publish"
    if authority.next:
        return "settle"
    signer = authority.current.certificate
    certificate = leaf.certificate if leaf else None
    if signer is None or certificate is None or not bundle.is_issuer(signer, certificate):
        return "reissue"
    return "retire" if authority.retired else "steady"


def _early(what: str, certificate: bundle.Certificate, *, now: datetime) -> str:
    start = bundle.show_time(certificate.not_valid_before_utc)
    return f"the {what} begins on {start} and now it is {bundle.show_time(now)}: check the clocks"
