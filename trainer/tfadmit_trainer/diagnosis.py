"""Why peers are missing: the likely cause, by evidence, and the command that shows it.

Pure: what was seen in, sentences out. The causes are those of Kubernetes' headless services: a
name exists when the pod has an address and, unless `publishNotReadyAddresses` is set, is ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tfadmit_trainer.peers import Peer

Why = Literal["unknown", "unanswered", "refused", "unasked"]
"""`refused`: the name resolves, nothing listens there. `unasked`: there was no time to ask."""

# `grep` with more patterns than that is no command that one copies.
_PATTERNS: Final = 3


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A peer that is not there, and what was seen last."""

    peer: Peer
    why: Why


def explain(missing: Sequence[Missing], *, own: Peer, total: int) -> str:
    """Give the likely cause and what to look at."""
    if all(item.why == "unasked" for item in missing):
        return (
            f"there was no time to ask for {len(missing):,} names, which are asked for slowly to "
            "spare the name servers; give it more: --barrier-timeout, or TFADMIT_BARRIER_TIMEOUT"
        )
    missing = [item for item in missing if item.why != "unasked"]
    unresolved = [item for item in missing if item.why != "refused"]
    own_missing = any(item.peer == own for item in unresolved)
    if not unresolved:
        return _not_listening(missing)
    if all(item.why != "unknown" for item in unresolved):
        return _no_answers(unresolved[0].peer)
    if len(unresolved) == total:
        return _none_published(own)
    if own_missing:
        return _own_not_published(own)
    return _some_missing(unresolved, total=total)


def _not_listening(missing: Sequence[Missing]) -> str:
    return (
        "their names resolve, but nothing accepts connections on their ports: the containers are "
        "still starting (a large image is pulled after the name exists), have ended, or a "
        f"NetworkPolicy is in the way\nlook: {_pods(missing)}"
    )


def _no_answers(peer: Peer) -> str:
    return (
        "the name servers in /etc/resolv.conf do not answer: cluster DNS is down or overloaded, or "
        "a NetworkPolicy forbids port 53\n"
        "look: kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide\n"
        f"and in this pod: getent hosts {peer.host}"
    )


def _none_published(own: Peer) -> str:
    place = _place(own)
    if place is None:
        return _unknown_names(own)
    namespace, service = place
    return (
        "not one name exists, not even this task's own. Either the service publishes ready pods "
        "only, and no task is ready before it has met the others: set "
        "spec.template.spec.network.publishNotReadyAddresses: true in the runtime; or the "
        f"addresses name a service (subdomain) {service!r} that these pods do not belong to\n"
        f"look: kubectl {namespace}get service {service} "
        "-o jsonpath='{.spec.publishNotReadyAddresses}'"
    )


def _own_not_published(own: Peer) -> str:
    place = _place(own)
    if place is None:
        return _unknown_names(own)
    namespace, service = place
    return (
        f"the names of others exist, but not this task's own, {own.host}, so they wait for it as "
        "well: the pod has another hostname or subdomain than the cluster's addresses say, or DNS "
        "has not heard of it yet\n"
        f"look: kubectl {namespace}get pods -o custom-columns="
        "NAME:.metadata.name,HOST:.spec.hostname,SUBDOMAIN:.spec.subdomain | "
        f"grep {own.host.partition('.')[0]}\n"
        f"and: kubectl {namespace}get endpointslices -l kubernetes.io/service-name={service}"
    )


def _some_missing(missing: Sequence[Missing], *, total: int) -> str:
    if _place(missing[0].peer) is None:
        return _unknown_names(missing[0].peer)
    return (
        f"the other {total - len(missing)} names exist, so DNS and the service are right: the pods "
        "of the missing ones are probably Pending (no free GPU or CPU, a quota, an image) or gone, "
        "or were never created because the cluster states more tasks than there are pods\n"
        f"look: {_pods(missing)}\n"
        "then: kubectl describe pod, under Events"
    )


def _unknown_names(peer: Peer) -> str:
    return (
        "these are no names of a Kubernetes service, so they come from the cluster that was stated "
        f"by hand: is it right?\nlook: getent hosts {peer.host}"
    )


def _pods(missing: Sequence[Missing]) -> str:
    names = [item.peer.host.partition(".")[0] for item in missing]
    place = _place(missing[0].peer)
    namespace = place[0] if place else ""
    # A pod is called as its host, then a dash and five random characters.
    patterns = [f"{name}-" for name in names[:_PATTERNS]]
    if len(names) > _PATTERNS:
        patterns = sorted({f"{name.rpartition('-')[0]}-" for name in names})[:_PATTERNS]
    chosen = " ".join(f"-e {text}" for text in patterns)
    return f"kubectl {namespace}get pods -o wide | grep {chosen}"


def _place(peer: Peer) -> tuple[str, str] | None:
    """Give kubectl's namespace option and the service, from `host.service[.namespace.svc.…]`."""
    labels = peer.host.split(".")
    if len(labels) >= 4 and labels[3] == "svc":
        return f"-n {labels[2]} ", labels[1]
    if len(labels) == 2 and not labels[1].isdigit():
        return "", labels[1]
    return None
