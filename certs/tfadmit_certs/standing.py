"""How the certificates of a cluster stand: what there is, what comes next, what is wrong.

Here: a look at the cluster to `Standing`, and that as text or JSON. Not here: looking (`secret`) or
printing (`status_command`). The time is an argument. No I/O.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tfadmit_certs import bundle, judge, state
from tfadmit_certs.names import Names
from tfadmit_certs.state import View

# A renewal takes seconds and is looked for every minute: what is late by this is not coming.
_LATE = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something wrong, and the line that helps."""

    text: str
    help: str

    def __str__(self) -> str:
        """Write both."""
        return f"{self.text}\n    {self.help}"


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """One webhook of ours; `trouble` says why it does not trust the leaf, empty when it does."""

    kind: str
    name: str
    published: bool
    trouble: str


@dataclass(frozen=True, kw_only=True)
class Standing:
    """All that `status` tells."""

    phase: str
    authority: bundle.Facts | None
    following: bundle.Facts | None
    retired: tuple[bundle.Facts, ...]
    retired_until: datetime | None
    leaf: bundle.Facts | None
    holder: str
    webhooks: tuple[Webhook, ...]
    problems: tuple[Problem, ...]


def judged(view: View, *, names: Names, lease: Mapping[str, Any] | None, now: datetime) -> Standing:
    """What a look at a cluster comes to."""
    authority, leaf = view.authority, view.leaf
    following = authority.next if authority else None
    webhooks = tuple(_webhooks(view, now=now))
    return Standing(
        phase=judge.phase(view),
        authority=_facts(authority.current.certificate if authority else None),
        following=_facts(following.certificate if following else None),
        retired=tuple(bundle.describe(item) for item in (authority.retired if authority else ())),
        retired_until=authority.retired_until if authority else None,
        leaf=_facts(leaf.certificate if leaf else None),
        holder=str(((lease or {}).get("spec") or {}).get("holderIdentity") or ""),
        webhooks=webhooks,
        problems=tuple(_problems(view, webhooks, names=names, lease=lease, now=now)),
    )


def _webhooks(view: View, *, now: datetime) -> Iterator[Webhook]:
    pem = view.authority.pem if view.authority else None
    for configuration in view.configurations:
        for hook in configuration.hooks:
            yield Webhook(
                kind=configuration.kind,
                name=hook.name,
                published=pem is not None and hook.trusts == pem,
                trouble=_untrusting(view, hook.trusts, now=now),
            )


def _untrusting(view: View, trusts: bytes | None, *, now: datetime) -> str:
    certificate = view.leaf.certificate if view.leaf else None
    if certificate is None:
        return "there is no leaf to trust"
    if not trusts:
        return "it has no caBundle"
    try:
        leaf = bundle.render([certificate])
        return "; ".join(bundle.chain_problems(leaf=leaf, ca=trusts, now=now))
    except bundle.BundleError as error:
        return str(error)


def _problems(
    view: View,
    webhooks: tuple[Webhook, ...],
    *,
    names: Names,
    lease: Mapping[str, Any] | None,
    now: datetime,
) -> Iterator[Problem]:
    logs = f"kubectl -n {names.namespace} logs deploy/tfadmit-certs"
    yield from _refusals(view)
    yield from _broken(view, names=names, logs=logs, now=now)
    for webhook in webhooks:
        if webhook.trouble:
            text = f"webhook {webhook.name} ({webhook.kind}) does not trust the leaf"
            yield Problem(text=f"{text}: {webhook.trouble}", help=logs)
    if not webhooks:
        yield Problem(
            text=f"no webhook of the configurations {names.configuration} calls the Service "
            f"{names.namespace}/{names.service}",
            help="kubectl apply -k deploy/overlays/self-managed",
        )
    if not _is_held(lease, now=now):
        yield Problem(
            text=f"nobody holds the Lease {names.namespace}/{names.lease}: nothing is renewed",
            help=f"kubectl -n {names.namespace} get deploy tfadmit-certs",
        )


def _refusals(view: View) -> Iterator[Problem]:
    for secret in (view.authority, view.leaf):
        if secret and secret.refusal:
            text, _, help_ = secret.refusal.partition(": ")
            yield Problem(text=text, help=help_)


def _broken(view: View, *, names: Names, logs: str, now: datetime) -> Iterator[Problem]:
    authority, leaf = view.authority, view.leaf
    if authority is None:
        yield Problem(text=f"Secret {names.label('ca')} does not exist", help=logs)
    elif reason := judge.unusable(authority.current, what="CA", now=now):
        yield Problem(text=reason.text, help=logs)
    if leaf is None:
        yield Problem(text=f"Secret {names.label('leaf')} does not exist", help=logs)
    elif leaf.trouble:
        yield Problem(text=leaf.trouble.text, help=logs)
    elif leaf.certificate and now >= leaf.certificate.not_valid_after_utc:
        end = bundle.show_time(leaf.certificate.not_valid_after_utc)
        yield Problem(text=f"the leaf expired on {end}", help=logs)


def _is_held(lease: Mapping[str, Any] | None, *, now: datetime) -> bool:
    spec = (lease or {}).get("spec") or {}
    renewed = str(spec.get("renewTime") or "").partition(".")[0].rstrip("Z") + "Z"
    moment = state.read_moment(renewed)
    return bool(spec.get("holderIdentity")) and moment is not None and now - moment < _LATE


def _facts(certificate: bundle.Certificate | None) -> bundle.Facts | None:
    return bundle.describe(certificate) if certificate else None


def as_text(found: Standing) -> str:
    """The standing for people: what there is, then what is wrong."""
    lines = [f"phase    {found.phase}"]
    lines += [f"{name:8} {_line(item)}" for name, item in _listed(found)]
    if found.leaf:
        lines.append(f"names    {found.leaf.alt_names}")
    lines.append(f"writes   {found.holder or 'nobody'}")
    for hook in found.webhooks:
        trust = "does not trust the leaf" if hook.trouble else "trusts the leaf"
        extra = "" if hook.published else ", its caBundle is not the current one"
        lines.append(f"webhook  {hook.name} ({hook.kind}) {trust}{extra}")
    lines += ["", *(f"wrong: {problem}" for problem in found.problems)]
    return "\n".join(lines).rstrip()


def as_json(found: Standing) -> str:
    """The same for programs; key names as Kubernetes writes them."""
    document: dict[str, Any] = {
        "phase": found.phase,
        "ca": _object(found.authority),
        "nextCA": _object(found.following),
        "retiredCAs": [_object(item) for item in found.retired],
        "retiredUntil": found.retired_until and state.show_moment(found.retired_until),
        "leaf": _object(found.leaf),
        "holder": found.holder,
        "webhooks": [
            {
                "kind": hook.kind,
                "name": hook.name,
                "current": hook.published,
                "trustsLeaf": not hook.trouble,
                **({"reason": hook.trouble} if hook.trouble else {}),
            }
            for hook in found.webhooks
        ],
        "problems": [{"text": item.text, "help": item.help} for item in found.problems],
    }
    return json.dumps(document, indent=2)


def _listed(found: Standing) -> Iterator[tuple[str, bundle.Facts]]:
    named = [("CA", found.authority), ("next", found.following), ("leaf", found.leaf)]
    yield from ((name, item) for name, item in named if item)
    yield from (("retired", item) for item in found.retired)


def _line(facts: bundle.Facts) -> str:
    span = f"{bundle.show_time(facts.not_before)} to {bundle.show_time(facts.not_after)}"
    return f"{facts.common_name}, {span}"


def _object(facts: bundle.Facts | None) -> dict[str, Any] | None:
    if facts is None:
        return None
    return {
        "commonName": facts.common_name,
        "serialNumber": f"{facts.serial:x}",
        "notBefore": state.show_moment(facts.not_before),
        "notAfter": state.show_moment(facts.not_after),
        "dnsNames": list(facts.alt_names.dns),
        "ipAddresses": [str(ip) for ip in facts.alt_names.ips],
    }
