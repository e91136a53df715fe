"""Which network profile a pod matches, and its network attachments merged with those it has.

Pure. Profiles are settings; the format of the annotation is that of the Kubernetes Network Plumbing
Working Group: `[namespace/]name[@interface]` separated by commas, or a JSON list of objects.
"""

import fnmatch
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tfadmit_trainer import contract
from tfadmit_webhook import raw
from tfadmit_webhook.decision import Reason, Refusal
from tfadmit_webhook.settings import NetworkProfile


def choose(
    profiles: Sequence[NetworkProfile], *, resources: Iterable[str], stated: str | None
) -> NetworkProfile | None:
    """Take the first profile that a requested resource matches.

    A pod that forbids attachments passes over the profiles that attach one: their settings name an
    interface that would not be there.
    """
    requested = set(resources)
    forbidden = stated is not None and stated.strip() == contract.NO_NETWORK
    for profile in profiles:
        if forbidden and profile.attach:
            continue
        if any(fnmatch.filter(requested, wanted) for wanted in profile.resources):
            return profile
    return None


def attachments(
    *, profile: NetworkProfile | None, stated: str | None, existing: str | None, namespace: str
) -> str | Refusal | None:
    """Give the value of the networks annotation; None leaves it as it is.

    What is there stays and comes first, in the form in which it was written. A network without a
    namespace is one of the pod's own, `namespace`.
    """
    wanted = stated if stated is not None else (profile.attach if profile else None)
    if not wanted or wanted.strip() == contract.NO_NETWORK:
        return None
    names = [word.strip() for word in wanted.split(",") if word.strip()]
    if existing is None or not existing.strip():
        return ",".join(names)
    if existing.lstrip().startswith("["):
        return _extend_json(existing, names, namespace)
    return _extend_list(existing, names, namespace)


def names(value: str) -> set[str]:
    """Give `[namespace/]name` of each attachment; none of what cannot be read."""
    if not value.lstrip().startswith("["):
        return {_bare(word, "") for word in value.split(",") if word.strip()}
    try:
        return {_json_name(item) for item in raw.sequence(json.loads(value))}
    except (ValueError, RecursionError):
        return set()


def _extend_list(existing: str, names: Sequence[str], namespace: str) -> str | None:
    present = {_bare(word, namespace) for word in existing.split(",")}
    missing = [name for name in names if _bare(name, namespace) not in present]
    return ",".join([existing.strip().rstrip(","), *missing]) if missing else None


def _extend_json(existing: str, names: Sequence[str], namespace: str) -> str | Refusal | None:
    try:
        items = json.loads(existing)
    except (ValueError, RecursionError) as error:
        return Refusal(
            reason=Reason.ANNOTATION_INVALID,
            message=(
                f"annotation {contract.NETWORKS_ANNOTATION} begins like a JSON list but is none "
                f"({error}), so no network can be added to it: mend it, or set annotation "
                f"{contract.NETWORK_ANNOTATION}: {contract.NO_NETWORK}"
            ),
        )
    present = {_bare(_json_name(item), namespace) for item in items}
    missing = [_json_item(name) for name in names if _bare(name, namespace) not in present]
    return json.dumps([*items, *missing], separators=(",", ":")) if missing else None


def _bare(word: str, own: str) -> str:
    """Give `[namespace/]name` without the interface, and without the pod's own namespace."""
    return word.strip().partition("@")[0].removeprefix(f"{own}/")


def _json_name(item: object) -> str:
    entry = raw.mapping(item)
    name, namespace = raw.text(entry.get("name")), raw.text(entry.get("namespace"))
    return f"{namespace}/{name}" if namespace else name


def _json_item(word: str) -> dict[str, Any]:
    name, _, interface = word.partition("@")
    namespace, _, bare = name.rpartition("/")
    item = {"name": bare, "namespace": namespace, "interface": interface}
    return {key: value for key, value in item.items() if value}
