"""What must be there before a job is created: its runtime, and all that it refers to.

Pure over the protocol `asked.Cluster`. What is created then is `create`.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.submit import asked, words
from tfadmit_client.submit.plan import Plan, Runtime
from tfadmit_client.submit.resource import (
    CLAIM,
    CLUSTER_RUNTIME,
    LOCAL_QUEUE,
    NAMESPACE,
    RUNTIME,
    SECRET,
    Resource,
)
from tfadmit_trainer import contract
from tfadmit_webhook import raw

DEFAULT_RUNTIME: Final = "tensorflow-distributed"
SERVERS_RUNTIME: Final = "tensorflow-ps"
EVALUATOR_RUNTIME: Final = "tensorflow-ps-evaluator"


def default_runtime(roles: Mapping[contract.Role, int]) -> str:
    """Give the shipped runtime that has these roles."""
    if roles.get("evaluator"):
        return EVALUATOR_RUNTIME
    return SERVERS_RUNTIME if any(roles.values()) else DEFAULT_RUNTIME


def runtime(
    cluster: asked.Cluster, *, namespace: str, name: str, roles: Mapping[contract.Role, int]
) -> Runtime:
    """Find the runtime: one of the namespace before one of the cluster, as the SDK does.

    Raises:
        ClientError: there is none of this name; it names those that there are.
    """
    wanted = name or default_runtime(roles)
    if own := _readable(cluster, RUNTIME, namespace=namespace, name=wanted):
        return Runtime(kind="TrainingRuntime", content=own)
    if found := _readable(cluster, CLUSTER_RUNTIME, namespace="", name=wanted):
        return Runtime(kind="ClusterTrainingRuntime", content=found)
    if asked.is_missing(cluster, NAMESPACE, namespace="", name=namespace):
        raise fault.ClientError(asked.no_namespace(cluster, namespace))
    known = sorted(_names(cluster, namespace))
    shown = (
        f"there are {', '.join(known)}"
        if known
        else "your platform team can install one, `tfadmit check` tells what is missing"
    )
    raise fault.ClientError(
        f"--runtime {wanted}: there is no such runtime in the namespace {namespace} nor in the "
        f"cluster; {shown}"
    )


def _readable(
    cluster: asked.Cluster, kind: Resource, *, namespace: str, name: str
) -> raw.JsonObject | None:
    try:
        return asked.find(cluster, kind, namespace=namespace, name=name)
    except listing.StatusError as error:
        raise fault.ClientError(
            f"--runtime {name}: you may not read {kind.plural} ({error.status}): a Role with the "
            f"verb get on {kind.plural}.{kind.group}, bound to you, grants that: {error.said}"
        ) from error


def _names(cluster: asked.Cluster, namespace: str) -> Iterator[str]:
    selector = f"{contract.FRAMEWORK_LABEL}={contract.FRAMEWORK}"
    for kind, where in ((RUNTIME, namespace), (CLUSTER_RUNTIME, "")):
        # The names are help and not the point, so who may not list goes without.
        with contextlib.suppress(listing.StatusError):
            for item in cluster.items(kind, namespace=where, selector=selector):
                yield raw.text(raw.at(item, ("metadata", "name")))


def mistakes(cluster: asked.Cluster, plan: Plan, *, namespace: str) -> Iterator[str]:
    """Say what the job refers to and is not there. Who may not look learns it from the pods."""
    wanted = [(secret, "--env") for secret in plan.wish.secrets]
    if plan.store_secret and (plan.wish.data or plan.output):
        wanted.append((plan.store_secret, "--data and --output"))
    for secret, option in wanted:
        if asked.is_missing(cluster, SECRET, namespace=namespace, name=secret):
            yield (
                f"{option}: there is no Secret {secret} in the namespace {namespace}; kubectl -n "
                f"{namespace}{cluster.flags} create secret generic {secret} --from-literal=KEY=…"
            )
    for item in plan.wish.env:
        if item.secret and (trouble := _key(cluster, item.secret, item.key, namespace=namespace)):
            yield f"--env {item.name}: {trouble}"
    for claim, option in _claims(plan):
        if asked.is_missing(cluster, CLAIM, namespace=namespace, name=claim):
            yield (
                f"{option}: there is no PersistentVolumeClaim {claim} in the namespace "
                f"{namespace}; `kubectl -n {namespace}{cluster.flags} get persistentvolumeclaims` "
                "shows those that there are"
            )
    if plan.queue == "kueue" and asked.is_missing(
        cluster, LOCAL_QUEUE, namespace=namespace, name=plan.wish.queue
    ):
        yield (
            f"--queue {plan.wish.queue}: there is no such queue in the namespace {namespace}; "
            f"`kubectl -n {namespace}{cluster.flags} get localqueues` shows those of Kueue, if it "
            "is installed"
        )


def _claims(plan: Plan) -> Iterator[tuple[str, str]]:
    for item in plan.wish.data:
        if item.claim:
            yield item.claim, f"--data {item.line}"
    if plan.output and (claim := words.claim(plan.output)):
        yield claim, f"--output {plan.output}"


def _key(cluster: asked.Cluster, name: str, key: str, *, namespace: str) -> str:
    try:
        found = asked.find(cluster, SECRET, namespace=namespace, name=name)
    except listing.StatusError:
        return ""
    keys = raw.mapping((found or {}).get("data"))
    if found is None or key in keys:
        return ""
    return f"the Secret {name} has no key {key!r}; it has {', '.join(sorted(keys)) or 'none'}"
