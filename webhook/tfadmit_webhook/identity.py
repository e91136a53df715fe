"""Which certificate the server shows: the last good one, whatever its source offers after it.

Every pair is judged before it is used: readable, key and certificate of one another, in date. Here
is the memory of that; where pairs come from is in `identity_files` and `kube.secret`, what an X.509
certificate says in `tfadmit_certs.bundle`. The time comes from outside. No I/O.
"""

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from tfadmit_certs import bundle
from tfadmit_webhook import tls

# Clocks of two machines differ. A pair that is out of date by less is better than none.
_SKEW = timedelta(seconds=60)


class Observer(Protocol):
    """Who is told."""

    def certificate_read(self, *, trouble: str = "") -> None:
        """Take note that another pair is used, or why one is not."""

    def certificate_ends(self, *, leaf: datetime, ca: datetime | None) -> None:
        """Take note of when the pair in use, and the CA that signed it, end."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A pair as PEM, and how its parts are called in sentences."""

    certificate: bytes
    """The certificate and its chain."""

    key: bytes = field(repr=False)
    ca: bytes = b""
    """The CAs that come with it; empty when none do."""

    certificate_name: str = "the certificate"
    key_name: str = "the key"

    def same_pair(self, other: "Offer") -> bool:
        """Whether certificate and key are those of the other."""
        return (self.certificate, self.key) == (other.certificate, other.key)


@dataclass(frozen=True, kw_only=True)
class _Held:
    offer: Offer
    facts: bundle.Facts
    context: ssl.SSLContext


class _DateFault(tls.TlsFault):
    """A pair that is good but for its dates."""


def check(offer: Offer, *, client_ca: bytes = b"") -> str | None:
    """Say what is wrong with a pair apart from its dates, or nothing.

    Dates can be mended by waiting; the rest is a mistake of whoever starts the server.
    """
    try:
        _read(offer)
        _context(offer, client_ca=client_ca)
    except (bundle.BundleError, tls.TlsFault) as fault:
        return str(fault)
    return None


class Keeper:
    """The pair in use. Sources offer from their threads, the event loop reads."""

    def __init__(
        self, *, observer: Observer, now: Callable[[], datetime], client_ca: bytes = b""
    ) -> None:
        self._observer = observer
        self._now = now
        self._client_ca = client_ca
        self._lock = threading.Lock()
        self._held: _Held | None = None
        self._pending: Offer | None = None
        self._hopeless: Offer | None = None
        self._authorities = b""
        self._troubles: dict[str, str] = {}

    @property
    def context(self) -> ssl.SSLContext | None:
        """What the next handshake is made with; None until there was a usable pair."""
        return self._held.context if self._held else None

    def offer(self, offer: Offer) -> None:
        """Use this pair from the next handshake on, if it is good. The same again costs nothing."""
        with self._lock:
            if offer != self._hopeless:
                self._judge(offer)

    def refuse(self, trouble: str) -> None:
        """Take note that the source has no pair, and why; what is held stays."""
        with self._lock:
            self._pending = self._hopeless = None
            self._tell("pair", trouble)

    def look(self) -> None:
        """Judge a pair that was refused for its dates again: time has passed."""
        with self._lock:
            if self._pending:
                self._judge(self._pending)

    def trust_clients(self, client_ca: bytes) -> None:
        """Take other CAs of clients from the next handshake on, if they can be read."""
        with self._lock:
            if client_ca != self._client_ca:
                try:
                    self._renew_context(client_ca)
                except tls.TlsFault as fault:
                    self._tell("client-ca", str(fault))
                    return
                self._client_ca = client_ca
                self._observer.certificate_read()
            self._troubles.pop("client-ca", None)

    def distrust(self, trouble: str) -> None:
        """Take note that the CAs of clients cannot be read; those that are known stay."""
        with self._lock:
            self._tell("client-ca", trouble)

    def authorities(self, pem: bytes) -> None:
        """Take note of CAs that clients trust, for a source that offers none with the pair."""
        with self._lock:
            if pem != self._authorities:
                self._authorities = pem
                self._tell_ends()

    def failing(self) -> list[str]:
        """Why requests should not come here, one line each."""
        held, trouble = self._held, self._troubles.get("pair", "")
        if held is None:
            return [f"no certificate to show: {trouble or 'none was offered yet'}"]
        now = self._now()
        if _grade(held.facts, now=now):
            return []
        line = f"{_out_of_date(held.facts, now=now)}; now it is {bundle.show_time(now)}"
        return [f"{line}; {trouble}" if trouble else line]

    def _judge(self, offer: Offer) -> None:
        held, self._pending, self._hopeless = self._held, None, None
        try:
            if held is None or not offer.same_pair(held.offer):
                self._take(offer)
            elif offer != held.offer:
                self._held = _Held(offer=offer, facts=held.facts, context=held.context)
                self._tell_ends()
        except _DateFault as fault:
            self._pending = offer
            self._tell("pair", str(fault))
        except (bundle.BundleError, tls.TlsFault) as fault:
            self._hopeless = offer
            self._tell("pair", str(fault))
        else:
            self._troubles.pop("pair", None)

    def _take(self, offer: Offer) -> None:
        now, facts = self._now(), _read(offer)
        held = _grade(self._held.facts, now=now) if self._held else 0
        # One in date is never given up for one that is not.
        if _grade(facts, now=now) < max(1, held):
            raise _DateFault(f"{offer.certificate_name}: {_out_of_date(facts, now=now)}")
        context = _context(offer, client_ca=self._client_ca)
        self._held = _Held(offer=offer, facts=facts, context=context)
        self._observer.certificate_read()
        self._tell_ends()

    def _renew_context(self, client_ca: bytes) -> None:
        if held := self._held:
            context = _context(held.offer, client_ca=client_ca)
            self._held = _Held(offer=held.offer, facts=held.facts, context=context)

    def _tell(self, what: str, trouble: str) -> None:
        if self._troubles.get(what) != trouble:  # once, not at every look
            self._troubles[what] = trouble
            self._observer.certificate_read(trouble=trouble)

    def _tell_ends(self) -> None:
        if held := self._held:
            authorities = held.offer.ca or self._authorities
            ca = _issuer_end(held.offer.certificate, authorities=authorities)
            self._observer.certificate_ends(leaf=held.facts.not_after, ca=ca)


def _read(offer: Offer) -> bundle.Facts:
    leaf = bundle.parse(offer.certificate, where=offer.certificate_name)[0]
    bundle.parse_key(offer.key, where=offer.key_name)
    if not bundle.key_matches(certificate=offer.certificate, key=offer.key):
        raise tls.TlsFault(f"{offer.key_name} does not belong to {offer.certificate_name}")
    return bundle.describe(leaf)


def _context(offer: Offer, *, client_ca: bytes) -> ssl.SSLContext:
    return tls.server_context(certificate=offer.certificate, key=offer.key, client_ca=client_ca)


def _grade(facts: bundle.Facts, *, now: datetime) -> int:
    """2 in date, 1 out of date by less than clocks may differ, 0 out of date."""
    start, end = facts.not_before, facts.not_after
    if start <= now <= end:
        return 2
    return int(start - _SKEW <= now <= end + _SKEW)


def _out_of_date(facts: bundle.Facts, *, now: datetime) -> str:
    # Without the time now: the sentence must stay the same from look to look.
    if now < facts.not_before:
        return f"the certificate is not valid before {bundle.show_time(facts.not_before)}"
    return f"the certificate expired on {bundle.show_time(facts.not_after)}"


def _issuer_end(leaf: bytes, *, authorities: bytes) -> datetime | None:
    """Give when the CA that signed the leaf ends, if it is among these or in the leaf's chain."""
    certificate, *known = bundle.parse(leaf)
    try:
        known += bundle.parse(authorities) if authorities else ()
    except bundle.BundleError:  # a metric less, and no reason to refuse a pair
        return None
    signers = (authority for authority in known if bundle.is_issuer(authority, certificate))
    return max((signer.not_valid_after_utc for signer in signers), default=None)
