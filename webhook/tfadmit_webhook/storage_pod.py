"""How a pod gets its data and saves its results: volumes, mounts, variables, two containers.

Pure: from a wish to what should be in the pod; what is there already by name or by mount path is
the user's, and stays. Both containers fit the restricted Pod Security Standard.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfadmit_trainer import contract
from tfadmit_trainer import workspace as tree
from tfadmit_transfer import inputs, uri
from tfadmit_webhook import patch, raw, storage, workload
from tfadmit_webhook.decision import Operation
from tfadmit_webhook.settings import Transfer

_OUTPUT_VOLUME = "tfadmit-output"
_OUTPUT_MOUNT = "/tfadmit/output"
# The user of the image, for pods whose own user is root: the restricted standard forbids that.
_USER = 65532
_REFERENCE = re.compile(r"\$\(([^()]+)\)")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A wish, the task that has it, and the pod it is in."""

    view: workload.Pod
    wish: storage.Wish
    task: contract.Task
    targets: Sequence[workload.Container]
    settings: Transfer

    @property
    def saves(self) -> bool:
        """Whether this pod saves model and checkpoints."""
        return self.wish.output is not None and storage.is_saver(self.task)


def environment(plan: Plan) -> dict[str, str]:
    """Give the variables of the program, as the launcher sets them, too."""
    names = [item.name for item in plan.wish.inputs]
    env = {tree.JOB_ENV: plan.wish.job}
    if names:
        env[tree.INPUTS_ENV] = ",".join(names)
    if plan.wish.output:
        env[tree.OUTPUT_URI_ENV] = _literal(_results(plan))
    return {**env, **tree.environment(tree.Tree(), names=names, environ={})}


def status(plan: Plan) -> dict[str, Any]:
    """Tell in the status of the pod what was decided."""
    told: dict[str, Any] = {}
    if plan.wish.inputs:
        told["data"] = [item.name for item in plan.wish.inputs]
    if plan.wish.output:
        told |= {"output": str(plan.wish.output), "saves": plan.saves}
    return told


def operations(plan: Plan) -> list[Operation]:
    """Give the patch, without the program's variables.

    The containers come last: they are put before the user's init containers, whose places change.
    """
    content = plan.view.content
    found: list[Operation] = []
    for target in plan.targets:
        taken = {_path(mount) for mount in _mounts(target.content)}
        missing = [mount for mount in _program_mounts(plan) if _path(mount) not in taken]
        found += patch.prepend(content, (*target.path, "volumeMounts"), missing)
    found += patch.prepend(content, ("spec", "volumes"), _without(plan, "volumes", _volumes(plan)))
    containers = _without(plan, "initContainers", _containers(plan))
    return [*found, *patch.prepend(content, ("spec", "initContainers"), containers)]


def _without(plan: Plan, kind: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    present = {raw.mapping(item).get("name") for item in raw.sequence(plan.view.spec.get(kind))}
    return [item for item in items if item["name"] not in present]


def _volumes(plan: Plan) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = []
    if _workspace(plan).get("name") == tree.VOLUME:
        volumes.append({"name": tree.VOLUME, "emptyDir": {}})
    for name, item in _mounted(plan):
        volumes.append({"name": name, **_volume_source(item.uri, read_only=True)})
    if plan.wish.output and plan.wish.output.scheme in uri.MOUNTED:
        source = _volume_source(plan.wish.output, read_only=False)
        volumes.append({"name": _OUTPUT_VOLUME, **source})
    return volumes


def _volume_source(where: uri.Uri, *, read_only: bool) -> dict[str, Any]:
    if where.scheme == "file":
        return {"hostPath": {"path": f"/{where.path.strip('/')}", "type": "Directory"}}
    claim: dict[str, Any] = {"claimName": where.host}
    if read_only:
        claim["readOnly"] = True
    return {"persistentVolumeClaim": claim}


def _program_mounts(plan: Plan) -> Iterator[dict[str, Any]]:
    yield _workspace(plan)
    for name, item in _mounted(plan):
        mount = {
            "name": name,
            "mountPath": f"{tree.ROOT}/{item.folder}",
            "readOnly": True,
        }
        if item.uri.scheme == "pvc" and item.uri.path.strip("/"):
            mount["subPath"] = item.uri.path.strip("/")
        yield mount


def _mounted(plan: Plan) -> Iterator[tuple[str, inputs.Input]]:
    """Give the inputs that are volumes, each with the name of its volume."""
    mounted = [item for item in plan.wish.inputs if item.mounted]
    for number, item in enumerate(mounted):
        yield f"tfadmit-data-{number}", item


def _workspace(plan: Plan) -> dict[str, Any]:
    """Give the mount of the workspace: the user's own, else that of a new volume."""
    for target in plan.targets:
        for mount in _mounts(target.content):
            if _path(mount) == tree.ROOT:
                return _shareable(mount)
    return {"name": tree.VOLUME, "mountPath": tree.ROOT}


def _shared_mounts(plan: Plan) -> list[dict[str, Any]]:
    """Give the mounts of our containers: the tree as the program sees it, without its data.

    Where the user mounts something at the workspace or below it, ours must see the same.
    """
    own = {item.folder for _, item in _mounted(plan)}
    below = f"{tree.ROOT}/"
    theirs = {tree.ROOT: _workspace(plan)}
    for target in plan.targets:
        for mount in _mounts(target.content):
            path = _path(mount)
            if path.startswith(below):
                theirs.setdefault(path, _shareable(mount))
    shared = [mount for path, mount in theirs.items() if path.removeprefix(below) not in own]
    if plan.wish.output and plan.wish.output.scheme in uri.MOUNTED:
        shared.append({"name": _OUTPUT_VOLUME, "mountPath": _OUTPUT_MOUNT})
    return shared


def _shareable(mount: raw.JsonObject) -> dict[str, Any]:
    """Give a mount as a container without privileges may have it."""
    return {key: value for key, value in mount.items() if key != "mountPropagation"}


def _variables(plan: Plan) -> list[dict[str, Any]]:
    """Give the program's variables of which its own mounts take folders (subPathExpr)."""
    found: list[dict[str, Any]] = []
    for target in plan.targets:
        stated = target.env()
        texts = [
            raw.text(mount.get("subPathExpr"))
            for mount in _mounts(target.content)
            if f"{_path(mount)}/".startswith(f"{tree.ROOT}/")
        ]
        named: set[str] = set()
        while texts:
            names = {*_REFERENCE.findall(texts.pop())} & {*stated} - named
            named |= names
            texts += [raw.text(stated[name].get("value")) for name in names]
        # In their order, as each may use those before it.
        found += [dict(entry) for name, entry in stated.items() if name in named]
    return found


def _containers(plan: Plan) -> list[dict[str, Any]]:
    fetch = _container(plan, tree.FETCH_CONTAINER, "fetch")
    if plan.wish.output is None:
        return [fetch]
    sync = _container(plan, tree.SYNC_CONTAINER, "sync")
    # A native sidecar: it starts before the program, and is asked to end after it.
    return [fetch, {**sync, "restartPolicy": "Always"}]


def _container(plan: Plan, name: str, program: str) -> dict[str, Any]:
    own = _own_environment(plan)
    env = [entry for entry in _variables(plan) if entry["name"] not in own]
    env += [{"name": key, "value": _literal(value)} for key, value in own.items()]
    container: dict[str, Any] = {
        "name": name,
        "image": plan.settings.image,
        "args": [program],
        "env": env,
        "resources": {
            # The same twice: a pod that is Guaranteed stays so.
            "requests": dict(plan.settings.resources),
            "limits": dict(plan.settings.resources),
        },
        "securityContext": _security(plan),
        "volumeMounts": _shared_mounts(plan),
    }
    if plan.wish.secret:
        container["envFrom"] = [{"secretRef": {"name": plan.wish.secret}}]
    return container


def _own_environment(plan: Plan) -> dict[str, str]:
    wish, output = plan.wish, plan.wish.output
    env = {
        tree.JOB_ENV: wish.job,
        tree.RUN_ENV: wish.run,
        contract.ATTEMPT_ENV: plan.view.annotations.get(contract.RESTART_ATTEMPT_ANNOTATION, "0"),
        contract.TASK_TYPE_ENV: plan.task.role,
        contract.TASK_INDEX_ENV: str(plan.task.index),
    }
    if wish.inputs:
        env[tree.FETCH_ENV] = inputs.render(wish.inputs)
    if output is not None:
        env[tree.OUTPUT_URI_ENV] = _results(plan)
        env[tree.SAVES_ENV] = "true" if plan.saves else "false"
        if output.scheme in uri.MOUNTED:
            path = output.path.strip("/") if output.scheme == "pvc" else ""
            parts = (_OUTPUT_MOUNT, path, wish.job)
            env[tree.OUTPUT_MOUNT_ENV] = "/".join(part for part in parts if part)
        for target in plan.targets:
            stated = raw.text(target.env().get(tree.SAVE_TIMEOUT_ENV, {}).get("value"))
            if stated:
                env[tree.SAVE_TIMEOUT_ENV] = stated
    return env


def _security(plan: Plan) -> dict[str, Any]:
    """Give what the restricted standard demands, as the program's user where that is stated."""
    security: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod_user = raw.at(plan.view.spec, ("securityContext", "runAsUser"))
    users = [raw.at(target.content, ("securityContext", "runAsUser")) for target in plan.targets]
    stated = next((user for user in users if isinstance(user, int)), pod_user)
    if isinstance(stated, int) and stated > 0:
        security["runAsUser"] = stated
    elif pod_user == 0:
        security["runAsUser"] = _USER
    return security


def _results(plan: Plan) -> str:
    """Give the address of the job's own results."""
    return str(uri.below(plan.wish.output, plan.wish.job)) if plan.wish.output else ""


def _literal(text: str) -> str:
    """Keep Kubernetes from expanding `$(NAME)` in the value of a variable."""
    return text.replace("$(", "$$(")


def _mounts(container: Mapping[str, Any]) -> Iterator[raw.JsonObject]:
    for item in raw.sequence(container.get("volumeMounts")):
        yield raw.mapping(item)


def _path(mount: raw.JsonObject) -> str:
    """Give where a mount is; the kubelet takes a relative path from the root."""
    return posixpath.normpath(f"/{raw.text(mount.get('mountPath')).lstrip('/')}")
