"""Carry a step of the plan out, as far as that needs no API server: what is to be written.

Here: new contents of the Secrets. Not here: deciding (`plan`), writing (`secret`). Time, keys and
serial numbers are arguments. No I/O.
"""

from dataclasses import dataclass
from datetime import datetime

from tfadmit_certs import bundle, issue, judge, plan, state
from tfadmit_certs.lifetimes import Lifetimes
from tfadmit_certs.state import View, Write

_LABEL = "tfadmit CA"


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """What making certificates takes."""

    wish: plan.Wish
    entropy: issue.Entropy


def write(step: plan.Step, view: View, *, workshop: Workshop, now: datetime) -> Write:
    """What the step writes into a Secret; `publish` writes into none."""
    makers = {
        "replace-ca": _replace,
        "add-next": _add_next,
        "adopt": _adopt,
        "promote": _promote,
        "retire": _retire,
        "issue-leaf": _issue_leaf,
        "copy-bundle": _copy_bundle,
    }
    return makers[step.name](view, workshop, now)


def _replace(view: View, workshop: Workshop, now: datetime) -> Write:
    """A CA that signs at once. Every CA that servers may live by goes on being trusted."""
    authority = view.authority
    following = authority.next if authority else None
    usable = following and not judge.unusable(following, what="next CA", now=now)
    if following and usable and not judge.early(following.certificate, now=now):
        # It may have been published already, so that it is trusted sooner than a new one.
        pair = following.pair or _new_ca(workshop, now)
    else:
        pair = _new_ca(workshop, now)
    known = (*(authority.trusted if authority else ()), *plan.beside_the_leaf(view))
    if authority is None or not authority.current.certificates:
        # The last place that tells what servers may live by. Otherwise a caBundle is not believed:
        # whatever somebody wrote into one would be trusted for as long as a leaf lives.
        known = (*known, *plan.in_the_configurations(view))
    annotations: dict[str, str | None] = {state.ROTATE: None} if authority else {}
    retired = _retired(view, known, own=pair, lifetimes=workshop.wish.lifetimes, now=now)
    return Write(
        which="ca",
        version=authority.version if authority else None,
        data={**_current(pair), **_no_next(), **retired.data},
        annotations={**annotations, **retired.annotations},
    )


def _add_next(view: View, workshop: Workshop, now: datetime) -> Write:
    pair = _new_ca(workshop, now)
    return Write(
        which="ca",
        version=_ca_version(view),
        data={state.NEXT_CERTIFICATE: pair.certificate, state.NEXT_KEY: pair.key},
        annotations={state.ROTATE: None},
    )


def _adopt(view: View, workshop: Workshop, now: datetime) -> Write:
    """Trust again what servers live by, and know until when."""
    authority = view.authority
    known: tuple[bundle.Certificate, ...] = (*(authority.retired if authority else ()),)
    known = (*known, *plan.orphans(view, now=now))
    if authority and authority.retired_trouble:
        known = (*known, *bundle.parse_readable(view.leaf.copy if view.leaf else b""))
    following = authority.next.certificates if authority and authority.next else ()
    current = (*(authority.current.certificates if authority else ()), *following)
    retired = _retired(
        view,
        tuple(item for item in known if item not in current),
        own=None,
        lifetimes=workshop.wish.lifetimes,
        now=now,
    )
    return Write(
        which="ca",
        version=_ca_version(view),
        data=retired.data,
        annotations=retired.annotations,
    )


def _promote(view: View, workshop: Workshop, now: datetime) -> Write:
    authority = view.authority
    if authority is None or authority.next is None or authority.next.pair is None:
        raise ValueError("there is no next CA to promote")
    pair = authority.next.pair
    known = (*authority.current.certificates, *authority.retired)
    retired = _retired(view, known, own=pair, lifetimes=workshop.wish.lifetimes, now=now)
    return Write(
        which="ca",
        version=authority.version,
        data={**_current(pair), **_no_next(), **retired.data},
        annotations=retired.annotations,
    )


def _retire(view: View, _: Workshop, __: datetime) -> Write:
    return Write(
        which="ca",
        version=_ca_version(view),
        data={state.RETIRED_CERTIFICATES: None},
        annotations={state.RETIRED_UNTIL: None},
    )


def _issue_leaf(view: View, workshop: Workshop, now: datetime) -> Write:
    authority, leaf = view.authority, view.leaf
    if authority is None or authority.current.pair is None:
        raise ValueError("there is no CA to sign with")
    lifetimes = workshop.wish.lifetimes
    pair = issue.issue_leaf(
        ca=authority.current.pair,
        names=workshop.wish.names,
        now=now,
        entropy=workshop.entropy,
        lifetime=lifetimes.leaf,
        skew=lifetimes.clock_skew,
    )
    end = bundle.parse(pair.certificate)[0].not_valid_after_utc
    earlier = judge.alive_until(leaf)
    return Write(
        which="leaf",
        version=leaf.version if leaf else None,
        data={
            state.CERTIFICATE: pair.certificate,
            state.KEY: pair.key,
            state.CA_CERTIFICATE: authority.pem,
        },
        annotations={
            state.ALIVE_UNTIL: state.show_moment(max(end, earlier) if earlier else end),
            state.ROTATE: None,
        },
    )


def _copy_bundle(view: View, _: Workshop, __: datetime) -> Write:
    if view.authority is None or view.leaf is None:
        raise ValueError("there is no bundle, or nothing to put it beside")
    return Write(
        which="leaf",
        version=view.leaf.version,
        data={state.CA_CERTIFICATE: view.authority.pem},
    )


@dataclass(frozen=True, kw_only=True)
class _Retired:
    data: dict[str, bytes | None]
    annotations: dict[str, str | None]


def _retired(
    view: View,
    known: tuple[bundle.Certificate, ...],
    *,
    own: bundle.Pair | None,
    lifetimes: Lifetimes,
    now: datetime,
) -> _Retired:
    """The CAs of these that are in date and not the new one, and when their last leaf ends."""
    mine = bundle.parse(own.certificate) if own else ()
    kept = tuple(
        item
        for item in dict.fromkeys(known)
        if item not in mine and bundle.is_authority(item) and now < item.not_valid_after_utc
    )
    if not kept:
        return _Retired(
            data={state.RETIRED_CERTIFICATES: None}, annotations={state.RETIRED_UNTIL: None}
        )
    authority = view.authority
    # Where the Secret of the leaf does not tell, any leaf made until now has ended by then.
    until = judge.alive_until(view.leaf) or now + lifetimes.leaf
    if authority and authority.retired_until:
        until = max(until, authority.retired_until)
    return _Retired(
        data={state.RETIRED_CERTIFICATES: bundle.render(kept)},
        annotations={state.RETIRED_UNTIL: state.show_moment(until)},
    )


def _new_ca(workshop: Workshop, now: datetime) -> bundle.Pair:
    lifetimes = workshop.wish.lifetimes
    return issue.issue_ca(
        now=now,
        entropy=workshop.entropy,
        lifetime=lifetimes.ca,
        label=_LABEL,
        skew=lifetimes.clock_skew,
    )


def _current(pair: bundle.Pair) -> dict[str, bytes | None]:
    return {state.CA_CERTIFICATE: pair.certificate, state.CA_KEY: pair.key}


def _no_next() -> dict[str, bytes | None]:
    return {state.NEXT_CERTIFICATE: None, state.NEXT_KEY: None}


def _ca_version(view: View) -> str | None:
    return view.authority.version if view.authority else None
