"""Creating: everything is tried, and only then made. What must be there already is `existing`.

Pure over the protocol `asked.Cluster`. The TrainJob comes first and owns the ConfigMap from its
first moment, so nothing is left over wherever this ends: without a job there is no ConfigMap of it,
and a job whose ConfigMap could not be made is deleted again. Its pods come later than both; one
that is faster waits for the ConfigMap.
"""

from collections.abc import Mapping
from typing import Any, Final

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.submit import asked, flags, mistyped
from tfadmit_client.submit.objects import Json, Submission
from tfadmit_client.submit.resource import CONFIG_MAP, TRAINJOB, Resource
from tfadmit_webhook import raw

# The last owner of a shared ConfigMap may go while we become one; it is then made anew.
_TRIES: Final = 5


def attempt(cluster: asked.Cluster, made: Submission, *, namespace: str) -> None:
    """Ask the API server and all webhooks whether both objects could be created.

    Raises:
        ClientError: they could not.
    """
    _create(cluster, TRAINJOB, made.trainjob, namespace=namespace, dry_run=True)
    if _present(cluster, made, namespace=namespace) is None:
        _create(cluster, CONFIG_MAP, made.config_map, namespace=namespace, dry_run=True)


def create(cluster: asked.Cluster, made: Submission, *, namespace: str) -> raw.JsonObject:
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
    cluster: asked.Cluster, error: BaseException, *, namespace: str, name: str, uid: str
) -> None:
    try:
        cluster.delete(TRAINJOB, namespace=namespace, name=name, uid=uid)
    except listing.ReadError as trouble:
        raise fault.ClientError(
            f"{error}; the TrainJob {name} is there without its code and could not be deleted "
            f"({trouble}): kubectl -n {namespace}{cluster.flags} delete trainjob {name}"
        ) from error


def _ensure(cluster: asked.Cluster, made: Submission, *, namespace: str, owner: Json) -> None:
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


def _present(cluster: asked.Cluster, made: Submission, *, namespace: str) -> raw.JsonObject | None:
    """Give the ConfigMap that is there already, once it is certain that it has this very code."""
    name = made.config_map["metadata"]["name"]
    try:
        found = asked.find(cluster, CONFIG_MAP, namespace=namespace, name=name)
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
            f"changed it; kubectl -n {namespace}{cluster.flags} delete configmap {name}"
        )
    return found


class _TakenError(fault.ClientError):
    """There is an object of this name."""


def _create(
    cluster: asked.Cluster,
    kind: Resource,
    content: Mapping[str, Any],
    *,
    namespace: str,
    dry_run: bool,
) -> raw.JsonObject:
    try:
        return cluster.create(kind, content, namespace=namespace, dry_run=dry_run)
    except listing.StatusError as error:
        raise _refusal(cluster, error, kind, content, namespace=namespace) from error


def _refusal(
    cluster: asked.Cluster,
    error: listing.StatusError,
    kind: Resource,
    content: Mapping[str, Any],
    *,
    namespace: str,
) -> fault.ClientError:
    name, said = content["metadata"]["name"], error.said
    if error.status == 409 and kind is CONFIG_MAP:
        return _TakenError(f"the ConfigMap {name} is there")
    resource = f"{kind.plural}.{kind.group}".rstrip(".")
    if error.status == 409:
        text = (
            f"--name {name}: there is a TrainJob of this name in the namespace {namespace}; choose "
            f"another one, or remove it: tfadmit rm -n {namespace}{cluster.flags} {name}"
        )
    elif error.status == 404 and "namespaces" in said:
        text = asked.no_namespace(cluster, namespace)
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
        said = flags.within(said, content) if kind is TRAINJOB else said
        text = f"the cluster refuses the {content['kind']} {name}: {said}"
    return fault.ClientError(text)
