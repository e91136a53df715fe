"""What to do next about the certificates: exactly one step, or to wait until when.

Here: the order of steps, which is what keeps every call working. The Secret of the CA changes
first, then every caBundle, then the leaf: so a leaf is only ever signed by a CA that is trusted
already, and a CA leaves last. Not here: carrying a step out (`steps`). Time is an argument. No I/O.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from tfadmit_certs import bundle, hooks, judge, san
from tfadmit_certs.judge import Phase
from tfadmit_certs.lifetimes import Lifetimes
from tfadmit_certs.state import Authority, View

StepName = Literal[
    "replace-ca",
    "add-next",
    "adopt",
    "publish",
    "disown",
    "issue-leaf",
    "copy-bundle",
    "promote",
    "retire",
]
# Words of reasons that are not the ordinary course: something was broken and is mended.
_MISHAPS = frozenset(
    {"missing", "unreadable", "mismatched", "not-a-ca", "encrypted", "expired", "early", "orphan"}
)
# With no date at all; whoever waits looks again long before.
_FAR = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do; `target` is the configuration that a `publish` or a `disown` is for."""

    name: StepName
    phase: Phase
    word: str
    text: str
    target: hooks.Configuration | None = None

    @property
    def mends(self) -> bool:
        """Whether this mends something that was broken."""
        return self.word in _MISHAPS


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Nothing to do before this moment, unless something changes."""

    until: datetime
    phase: Phase


@dataclass(frozen=True, kw_only=True)
class Refuse:
    """Nothing can be done until a person does something; `text` says what."""

    text: str
    phase: Phase


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the certificates should be like."""

    names: san.Names
    lifetimes: Lifetimes


def decide(
    view: View, *, wish: Wish, trusted: Mapping[str, timedelta], now: datetime
) -> Step | Wait | Refuse:
    """The next step.

    `trusted` tells by the fingerprint of a CA for how long every configuration has been seen to
    trust it: what an API server may not have heard of yet must not be relied on.
    """
    phase = judge.phase(view)
    found = next(_needed(view, wish=wish, trusted=trusted, now=now), None)
    if isinstance(found, Step):
        refusal = _refusal(view, found)
        return Refuse(text=refusal, phase=phase) if refusal else found
    if found is not None:
        return Wait(until=found, phase=phase)
    dates = (moment for moment in _dates(view, wish.lifetimes) if moment > now)
    return Wait(until=min(dates, default=now + _FAR), phase=phase)


def _needed(
    view: View, *, wish: Wish, trusted: Mapping[str, timedelta], now: datetime
) -> Iterator[Step | datetime]:
    """Everything that is to be done, the most urgent first; a moment stands for settling."""
    authority = view.authority
    current = authority.current if authority else None
    if reason := judge.unusable(current, what="CA", now=now):
        word = "first" if _is_first(view) else reason.word
        yield Step(name="replace-ca", phase="publish", word=word, text=reason.text)
        return
    if authority is None:  # unusable said so
        return
    yield from _mending(view, authority, now=now)
    yield from _publishing(view, authority)
    yield from _leaf(view, authority, wish=wish, trusted=trusted, now=now)
    yield from _rotation(view, authority, wish=wish, trusted=trusted, now=now)


def _mending(view: View, authority: Authority, *, now: datetime) -> Iterator[Step]:
    if authority.next:
        broken = judge.unusable(authority.next, what="next CA", now=now)
        if broken:
            yield Step(name="add-next", phase="publish", word=broken.word, text=broken.text)
        elif judge.early(authority.next.certificate, now=now):
            text = "the next CA is not valid yet: check the clocks"
            yield Step(name="add-next", phase="publish", word="early", text=text)
    if authority.retired_trouble:
        trouble = authority.retired_trouble
        yield Step(name="adopt", phase="retire", word=trouble.reason, text=trouble.text)
    elif authority.retired and authority.retired_until is None:
        text = "when the retired CAs may go is not known"
        yield Step(name="adopt", phase="retire", word="missing", text=text)
    elif _ends_too_soon(view, authority, now=now):
        text = "a leaf of a retired CA is alive for longer than the Secret of the CA says"
        yield Step(name="adopt", phase="retire", word="orphan", text=text)
    elif orphans(view, now=now):
        text = "servers live by a leaf whose CA is not in the Secret of the CA"
        yield Step(name="adopt", phase="retire", word="orphan", text=text)


def orphans(view: View, *, now: datetime) -> tuple[bundle.Certificate, ...]:
    """CAs that signed the leaf in use, that our Secret does not know, and that others still do."""
    leaf, authority = view.leaf, view.authority
    if leaf is None or authority is None or not judge.alive(leaf, now=now):
        return ()
    if judge.issuers(leaf.certificate, authority.trusted):
        return ()
    elsewhere = (*beside_the_leaf(view), *in_the_configurations(view))
    found = judge.issuers(leaf.certificate, tuple(dict.fromkeys(elsewhere)))
    return tuple(item for item in found if now < item.not_valid_after_utc)


def beside_the_leaf(view: View) -> tuple[bundle.Certificate, ...]:
    """Every CA in the copy of the bundle that the Secret of the leaf holds."""
    return _authorities(view.leaf.copy if view.leaf else b"")


def in_the_configurations(view: View) -> tuple[bundle.Certificate, ...]:
    """Every CA in a caBundle of ours."""
    pems = (hook.trusts or b"" for item in view.configurations for hook in item.hooks)
    return tuple(dict.fromkeys(found for pem in pems for found in _authorities(pem)))


def _authorities(pem: bytes) -> tuple[bundle.Certificate, ...]:
    return tuple(item for item in bundle.parse_readable(pem) if bundle.is_authority(item))


def _publishing(view: View, authority: Authority) -> Iterator[Step]:
    pem = authority.pem
    for configuration in view.configurations:
        if lacking := configuration.lacks(pem):
            names = ", ".join(hook.name for hook in lacking)
            text = f"caBundle of {names} in {configuration.kind} {configuration.name}"
            yield Step(
                name="publish", phase="publish", word="bundle", text=text, target=configuration
            )
    for configuration in view.configurations:
        if configuration.owned is not None:
            text = f"{configuration.kind} {configuration.name} is left to its owners"
            yield Step(
                name="disown", phase="publish", word="bundle", text=text, target=configuration
            )


def _leaf(
    view: View,
    authority: Authority,
    *,
    wish: Wish,
    trusted: Mapping[str, timedelta],
    now: datetime,
) -> Iterator[Step | datetime]:
    signer = authority.current.certificate
    reason = judge.leaf_due(view, names=wish.names, lifetimes=wish.lifetimes, now=now)
    # A current CA from the future cannot sign; a rotation is due then, and mends the leaf too.
    if reason and signer and not judge.early(signer, now=now):
        left = _unsettled(view, signer, wish=wish, trusted=trusted, now=now)
        if not left:
            yield Step(name="issue-leaf", phase="reissue", word=reason.word, text=reason.text)
        elif not authority.next:
            yield now + left
    if view.leaf and view.leaf.copy != authority.pem and not view.leaf.refusal:
        text = "the bundle beside the leaf is not the one that is published"
        yield Step(name="copy-bundle", phase="publish", word="bundle", text=text)


def _rotation(
    view: View,
    authority: Authority,
    *,
    wish: Wish,
    trusted: Mapping[str, timedelta],
    now: datetime,
) -> Iterator[Step | datetime]:
    if authority.next and authority.next.certificate:
        left = _unsettled(view, authority.next.certificate, wish=wish, trusted=trusted, now=now)
        if left:
            yield now + left
        yield Step(name="promote", phase="promote", word="settled", text="every caBundle has both")
    end = judge.retired_end(authority, lifetimes=wish.lifetimes)
    if end and end <= now:
        yield Step(
            name="retire",
            phase="retire",
            word="due",
            text=f"no leaf of a retired CA is alive since {bundle.show_time(end)}",
        )
    if reason := judge.rotation_due(authority, lifetimes=wish.lifetimes, now=now):
        yield Step(name="add-next", phase="publish", word=reason.word, text=reason.text)


def _unsettled(
    view: View,
    signer: bundle.Certificate,
    *,
    wish: Wish,
    trusted: Mapping[str, timedelta],
    now: datetime,
) -> timedelta:
    """How much longer to wait until every API server trusts this CA.

    Nothing when no leaf is at stake that another CA signed.
    """
    if not _lives_by_another(view, signer, now=now):
        return timedelta()
    since = trusted.get(bundle.fingerprint(signer), timedelta())
    return max(wish.lifetimes.settle - since, timedelta())


def _lives_by_another(view: View, signer: bundle.Certificate, *, now: datetime) -> bool:
    """May servers live by a leaf of another CA? Also by one that only they still have."""
    leaf, authority = view.leaf, view.authority
    if leaf and judge.alive(leaf, now=now):
        return not judge.issuers(leaf.certificate, (signer,))
    end = judge.alive_until(leaf)
    return bool(authority and authority.retired) and (end is None or now < end)


def _ends_too_soon(view: View, authority: Authority, *, now: datetime) -> bool:
    certificate = view.leaf.certificate if view.leaf else None
    if not judge.alive(view.leaf, now=now) or not judge.issuers(certificate, authority.retired):
        return False
    stated, needed = authority.retired_until, judge.alive_until(view.leaf)
    return stated is not None and needed is not None and stated < needed


def _refusal(view: View, step: Step) -> str:
    if step.target:
        return ""
    secret = view.leaf if step.name in ("issue-leaf", "copy-bundle") else view.authority
    return secret.refusal if secret else ""


def _is_first(view: View) -> bool:
    return view.authority is None and view.leaf is None and not in_the_configurations(view)


def _dates(view: View, lifetimes: Lifetimes) -> Iterator[datetime]:
    """The moments at which time alone makes something due."""
    authority, leaf = view.authority, view.leaf
    if authority and authority.current.certificate:
        end = authority.current.certificate.not_valid_after_utc
        yield from (end - lifetimes.ca_renew_before, end)
        if retired := judge.retired_end(authority, lifetimes=lifetimes):
            yield retired
    if leaf and leaf.certificate:
        end = leaf.certificate.not_valid_after_utc
        yield from (end - lifetimes.leaf_renew_before, end)
