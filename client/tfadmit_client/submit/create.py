"""Submitting: what must be there is looked for, everything is tried, and only then created.

Pure over the protocol `Cluster`. The TrainJob comes first and owns the ConfigMap from its first
moment, so nothing is left over wherever this ends: without a job there is no ConfigMap of it, and a
job whose ConfigMap could not be made is deleted again. Its pods come later than both; one that is
faster waits for the ConfigMap.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from tfadmit_client import fault, listing
from tfadmit_client.submit import mistyped, words
from tfadmit_client.submit.objects import Json, Submission
from tfadmit_client.submit.plan import Plan, Runtime
from tfadmit_client.submit.resource import (
    CLAIM,
    CLUSTER_RUNTIME,
    CONFIG_MAP,
    LOCAL_QUEUE,
    NAMESPACE,
    RUNTIME,
    SECRET,
    TRAINJOB,
    Resource,
)
from tfadmit_trainer import contract
from tfadmit_webhook import raw

DEFAULT_RUNTIME: Final = "tensorflow-distributed"
SERVERS_RUNTIME: Final = "tensorflow-ps"
EVALUATOR_RUNTIME: Final = "tensorflow-ps-evaluator"
# The last owner of a shared ConfigMap may go while we become one; it is then made anew.
_TRIES: Final = 5


class Cluster(Protocol):
    """Objects of a cluster.

    Everything raises `listing.StatusError` where the API server refuses, and other
    `listing.ReadError`s where it cannot be asked.
    """

    def get(self, kind: Resource, *, namespace: str, name: str) -> raw.JsonObject:
        """Give an object."""

    def items(self, kind: Resource, *, namespace: str, selector: str) -> list[raw.JsonObject]:
        """Give the objects that have some labels."""

    def create(
        self, kind: Resource, content: Mapping[str, Any], *, namespace: str, dry_run: bool
    ) -> raw.JsonObject:
        """Create an object; a dry run only asks whether it could be."""

    def own(self, kind: Resource, *, namespace: str, name: str, owner: Json) -> None:
        """Add an owner to an object."""

    def delete(self, kind: Resource, *, namespace: str, name: str, uid: str) -> None:
        """Delete this very object."""


def find(cluster: Cluster, kind: Resource, *, namespace: str, name: str) -> raw.JsonObject | None:
    """Give an object, or None when it does not exist."""
    try:
        return cluster.get(kind, namespace=namespace, name=name)
    except listing.StatusError as error:
        if error.status == 404:
            return None
        raise


def default_runtime(roles: Mapping[contract.Role, int]) -> str:
    """Give the shipped runtime that has these roles."""
    if roles.get("evaluator"):
        return EVALUATOR_RUNTIME
    return SERVERS_RUNTIME if any(roles.values()) else DEFAULT_RUNTIME


def runtime(
    cluster: Cluster, *, namespace: str, name: str, roles: Mapping[contract.Role, int]
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
    if _is_missing(cluster, NAMESPACE, namespace="", name=namespace):
        raise fault.ClientError(_no_namespace(namespace))
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
    cluster: Cluster, kind: Resource, *, namespace: str, name: str
) -> raw.JsonObject | None:
    try:
        return find(cluster, kind, namespace=namespace, name=name)
    except listing.StatusError as error:
        raise fault.ClientError(
            f"--runtime {name}: you may not read {kind.plural} ({error.status}): a Role with the "
            f"verb get on {kind.plural}.{kind.group}, bound to you, grants that: {error.said}"
        ) from error


def _names(cluster: Cluster, namespace: str) -> Iterator[str]:
    selector = f"{contract.FRAMEWORK_LABEL}={contract.FRAMEWORK}"
    for kind, where in ((RUNTIME, namespace), (CLUSTER_RUNTIME, "")):
        # The names are help and not the point, so who may not list goes without.
        with contextlib.suppress(listing.StatusError):
            for item in cluster.items(kind, namespace=where, selector=selector):
                yield raw.text(raw.at(item, ("metadata", "name")))


def mistakes(cluster: Cluster, plan: Plan, *, namespace: str) -> Iterator[str]:
    """Say what the job refers to and is not there. Who may not look learns it from the pods."""
    wanted = [(secret, "--env") for secret in plan.wish.secrets]
    if plan.store_secret and (plan.wish.data or plan.output):
        wanted.append((plan.store_secret, "--data and --output"))
    for secret, option in wanted:
        if _is_missing(cluster, SECRET, namespace=namespace, name=secret):
            yield (
                f"{option}: there is no Secret {secret} in the namespace {namespace}; kubectl -n "
                f"{namespace} create secret generic {secret} --from-literal=KEY=…"
            )
    for item in plan.wish.env:
        if item.secret and (trouble := _key(cluster, item.secret, item.key, namespace=namespace)):
            yield f"--env {item.name}: {trouble}"
    for claim, option in _claims(plan):
        if _is_missing(cluster, CLAIM, namespace=namespace, name=claim):
            yield (
                f"{option}: there is no PersistentVolumeClaim {claim} in the namespace "
                f"{namespace}; `kubectl -n {namespace} get persistentvolumeclaims` shows those "
                "that there are"
            )
    if plan.queue == "kueue" and _is_missing(
        cluster, LOCAL_QUEUE, namespace=namespace, name=plan.wish.queue
    ):
        yield (
            f"--queue {plan.wish.queue}: there is no such queue in the namespace {namespace}; "
            f"`kubectl -n {namespace} get localqueues` shows those of Kueue, if it is installed"
        )


def _claims(plan: Plan) -> Iterator[tuple[str, str]]:
    for item in plan.wish.data:
        if item.claim:
            yield item.claim, f"--data {item.line}"
    if plan.output and (claim := words.claim(plan.output)):
        yield claim, f"--output {plan.output}"


def _is_missing(cluster: Cluster, kind: Resource, *, namespace: str, name: str) -> bool:
    try:
        return find(cluster, kind, namespace=namespace, name=name) is None
    except listing.StatusError as error:
        if error.status == 403:
            return False
        raise


def _key(cluster: Cluster, name: str, key: str, *, namespace: str) -> str:
    try:
        found = find(cluster, SECRET, namespace=namespace, name=name)
    except listing.StatusError:
        return ""
    keys = raw.mapping((found or {}).get("data"))
    if found is None or key in keys:
        return ""
    return f"the Secret {name} has no key {key!r}; it has {', '.join(sorted(keys)) or 'none'}"


def attempt(cluster: Cluster, made: Submission, *, namespace: str) -> None:
    """Ask the API server and all webhooks whether both objects could be created.

    Raises:
        ClientError: they could not.
    """
    _create(cluster, TRAINJOB, made.trainjob, namespace=namespace, dry_run=True)
    if _present(cluster, made, namespace=namespace) is None:
        _create(cluster, CONFIG_MAP, made.config_map, namespace=namespace, dry_run=True)


def create(cluster: Cluster, made: Submission, *, namespace: str) -> raw.JsonObject:
    """Create both objects, or neither; give the TrainJob as it was created.

    Raises:
        ClientError: the API server refuses one of them.
    """
    job = _create(cluster, TRAINJOB, made.trainjob, namespace=namespace, dry_run=False)
    name, uid = (raw.text(raw.at(job, ("metadata", key))) for key in ("name", "uid"))
    owner = {
        "apiVersion": raw.text(made.trainjob["apiVersion"]),
        "kind": "TrainJob",
        "name": name,
        "uid": uid,
    }
    try:
        _ensure(cluster, made, namespace=namespace, owner=owner)
    except BaseException as error:  # Ctrl-C included: a job without its code must not stay
        _take_back(cluster, error, namespace=namespace, name=name, uid=uid)
        raise
    return job


def _take_back(
    cluster: Cluster, error: BaseException, *, namespace: str, name: str, uid: str
) -> None:
    try:
        cluster.delete(TRAINJOB, namespace=namespace, name=name, uid=uid)
    except listing.ReadError as trouble:
        raise fault.ClientError(
            f"{error}; the TrainJob {name} is there without its code and could not be deleted "
            f"({trouble}): kubectl -n {namespace} delete trainjob {name}"
        ) from error


def _ensure(cluster: Cluster, made: Submission, *, namespace: str, owner: Json) -> None:
    """Make the ConfigMap with this owner, or make the job an owner of the one that is there."""
    name = made.config_map["metadata"]["name"]
    for _ in range(_TRIES):
        if _present(cluster, made, namespace=namespace) is None:
            content = {
                **made.config_map,
                "metadata": {**made.config_map["metadata"], "ownerReferences": [owner]},
            }
            try:
                _create(cluster, CONFIG_MAP, content, namespace=namespace, dry_run=False)
            except _TakenError:
                continue
            return
        try:
            cluster.own(CONFIG_MAP, namespace=namespace, name=name, owner=owner)
        except listing.StatusError as error:
            if error.status == 404:
                continue
            raise fault.ClientError(
                f"the ConfigMap {name} with the code is there, and you may not become an owner of "
                f"it ({error.status}): a Role with the verb patch on configmaps, bound to you, "
                f"grants that: {error.said}"
            ) from error
        return
    raise fault.ClientError(f"the ConfigMap {name} came and went {_TRIES} times: try again")


def _present(cluster: Cluster, made: Submission, *, namespace: str) -> raw.JsonObject | None:
    """Give the ConfigMap that is there already, once it is certain that it has this very code."""
    name = made.config_map["metadata"]["name"]
    try:
        found = find(cluster, CONFIG_MAP, namespace=namespace, name=name)
    except listing.StatusError as error:
        raise fault.ClientError(
            f"you may not read ConfigMaps in {namespace} ({error.status}), and one carries the "
            "code: a Role with the verbs get, create and patch on configmaps, bound to you, grants "
            f"that: {error.said}"
        ) from error
    if found is None or raw.at(found, ("metadata", "deletionTimestamp")):
        return None
    same = raw.mapping(found.get("binaryData")) == made.config_map["binaryData"]
    if not same or found.get("immutable") is not True:
        raise fault.ClientError(
            f"the ConfigMap {name} is there and has other content than its name says: somebody has "
            f"changed it; kubectl -n {namespace} delete configmap {name}"
        )
    return found


class _TakenError(fault.ClientError):
    """There is an object of this name."""


def _create(
    cluster: Cluster, kind: Resource, content: Mapping[str, Any], *, namespace: str, dry_run: bool
) -> raw.JsonObject:
    try:
        return cluster.create(kind, content, namespace=namespace, dry_run=dry_run)
    except listing.StatusError as error:
        raise _refusal(error, kind, content, namespace=namespace) from error


def _refusal(
    error: listing.StatusError, kind: Resource, content: Mapping[str, Any], *, namespace: str
) -> fault.ClientError:
    name, said = content["metadata"]["name"], error.said
    if error.status == 409 and kind is CONFIG_MAP:
        return _TakenError(f"the ConfigMap {name} is there")
    resource = f"{kind.plural}.{kind.group}".rstrip(".")
    if error.status == 409:
        text = (
            f"--name {name}: there is a TrainJob of this name in the namespace {namespace}; choose "
            f"another one, or remove it: tfadmit rm -n {namespace} {name}"
        )
    elif error.status == 404 and "namespaces" in said:
        text = _no_namespace(namespace)
    elif error.status == 404:
        text = (
            f"the cluster serves no {resource}: install Kubeflow Trainer 2.x, or name another "
            "cluster with --context"
        )
    elif error.status == 403 and "cannot create resource" in said:
        text = (
            f"you may not create {resource} in {namespace}: a Role with the verb create on them, "
            f"bound to you, grants that: {said}"
        )
    elif "runtimePatches" in said and "unknown field" in said:
        text = (
            "this cluster's Kubeflow Trainer has no runtimePatches, by which the code reaches the "
            "pods: it needs 2.2 or newer"
        )
    elif wrong := mistyped.sentence(said):
        text = wrong
    else:
        text = f"the cluster refuses the {content['kind']} {name}: {said}"
    return fault.ClientError(text)


def _no_namespace(namespace: str) -> str:
    return f"there is no namespace {namespace}: name one with -n that `kubectl get ns` shows"
