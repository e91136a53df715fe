"""A plan and its code as objects: a TrainJob, and a ConfigMap with code and launcher. Pure.

The ConfigMap is named after its content, so identical code is there once for any number of jobs,
and each job that uses it is an owner: Kubernetes removes it with the last of them. Everything that
comes from a user arrives as it was: Kubernetes expands `$(NAME)` in arguments and variables, so
each `$` is written twice.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tfadmit_client.submit import affinity, options, words
from tfadmit_client.submit.plan import Place, Plan
from tfadmit_trainer import contract, workspace

Json = dict[str, Any]

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_TRAINER: Final = "trainer.kubeflow.org/v1alpha1"
_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_MANAGER: Final = "tfadmit.dev/run"
# A manager of its own, so that Trainer merges the user's fields over ours.
PATCH_MANAGER: Final = "tfadmit.dev/patch"
# 80 bits: nobody meets the same name by chance.
_DIGITS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Stored:
    """An archive in an object store."""

    base: str
    sha256: str

    @property
    def name(self) -> str:
        """Its name below the base, made of its content: the same code is there once."""
        return workspace.archive_name(self.sha256)

    @property
    def uri(self) -> str:
        """Its address."""
        return f"{self.base}/{self.name}"

    @property
    def line(self) -> str:
        """It as an input, whose hash is checked when it has been fetched."""
        return f"{workspace.CODE_INPUT}={self.uri}#sha256={self.sha256}"


@dataclass(frozen=True, kw_only=True)
class Code:
    """What travels with a job."""

    launcher: bytes
    archive: bytes | None = None
    """None where the program is in the image."""

    source: str = ""
    """Commit and state of its repository as JSON, if it has one."""

    stored: Stored | None = None
    """Where the archive is in an object store, being too large to travel with the job."""

    @property
    def sha256(self) -> str:
        """The hash of the archive."""
        if self.stored:
            return self.stored.sha256
        return hashlib.sha256(self.archive).hexdigest() if self.archive is not None else ""

    @property
    def name(self) -> str:
        """The name of the ConfigMap, made of its content."""
        whole = hashlib.sha256(self.launcher)
        whole.update(self.sha256.encode())
        return f"tfadmit-code-{whole.hexdigest()[:_DIGITS]}"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What is to be created."""

    trainjob: Json
    config_map: Json


def submission(
    plan: Plan, code: Code, *, name: str, namespace: str, said: options.Options
) -> Submission:
    """Make the objects of a job of this name."""
    return Submission(
        trainjob=_trainjob(plan, code, name=name, namespace=namespace, said=said),
        config_map=_config_map(code, namespace=namespace),
    )


def _config_map(code: Code, *, namespace: str) -> Json:
    files = {workspace.LAUNCHER: code.launcher}
    if code.archive is not None:
        files[workspace.ARCHIVE] = code.archive
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": code.name,
            "namespace": namespace,
            "labels": {MANAGED_BY: "tfadmit"},
        },
        "immutable": True,
        "binaryData": {key: base64.b64encode(files[key]).decode() for key in sorted(files)},
    }


def _trainjob(plan: Plan, code: Code, *, name: str, namespace: str, said: options.Options) -> Json:
    wish = plan.wish
    labels = {MANAGED_BY: "tfadmit"}
    if plan.queue == "kueue":
        labels[contract.QUEUE_LABEL] = wish.queue
    notes = _notes(plan, code)
    trainer: Json = {
        **({"numNodes": wish.workers} if wish.workers is not None else {}),
        **({"image": plan.image} if plan.image else {}),
        "command": ["python3", f"{workspace.CODE_MOUNT}/{workspace.LAUNCHER}", "--"],
        "args": [_literal(word) for word in wish.command],
        "env": _env(plan, code, name=name),
        **_resources(plan),
    }
    spec: Json = {
        "runtimeRef": {"kind": plan.runtime.kind, "name": plan.runtime.name},
        "trainer": trainer,
        **({"activeDeadlineSeconds": wish.deadline} if wish.deadline else {}),
        "runtimePatches": _patches(plan, code, name=name, notes=notes),
    }
    repeat = json.dumps(options.to_mapping(said), ensure_ascii=False, separators=(",", ":"))
    return {
        "apiVersion": _TRAINER,
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {**notes, contract.OPTIONS_ANNOTATION: repeat},
        },
        "spec": spec,
    }


def _notes(plan: Plan, code: Code) -> dict[str, str]:
    """Write what the webhook follows and `tfadmit show` tells, on job and pods alike."""
    lines = [item.line for item in plan.wish.data]
    if code.stored:
        lines.append(code.stored.line)
    wanted = {
        contract.COMMAND_ANNOTATION: json.dumps(list(plan.wish.command), ensure_ascii=False),
        contract.CODE_ANNOTATION: code.sha256,
        contract.SOURCE_ANNOTATION: code.source,
        contract.DATA_ANNOTATION: "\n".join(lines),
        contract.OUTPUT_ANNOTATION: plan.output,
        contract.STORE_SECRET_ANNOTATION: plan.store_secret if lines or plan.output else "",
    }
    return {key: text for key, text in wanted.items() if text}


def _env(plan: Plan, code: Code, *, name: str) -> list[Json]:
    own = {
        workspace.JOB_ENV: name,
        workspace.CODE_SHA256_ENV: code.sha256,
        workspace.INPUTS_ENV: ",".join(item.name for item in plan.wish.data),
        workspace.OUTPUT_URI_ENV: f"{plan.output}/{name}" if plan.output else "",
    }
    stated = {item.name for item in plan.wish.env}
    given = [
        {"name": key, "value": _literal(text)}
        for key, text in own.items()
        if text and key not in stated
    ]
    return [*given, *(_variable(item) for item in plan.wish.env)]


def _variable(item: words.Variable) -> Json:
    if item.secret:
        reference = {"name": item.secret, "key": item.key}
        return {"name": item.name, "valueFrom": {"secretKeyRef": reference}}
    return {"name": item.name, "value": _literal(item.value)}


def _literal(text: str) -> str:
    """Write a text so that Kubernetes' expansion of `$(NAME)` gives it back."""
    return text.replace("$", "$$")


def _resources(plan: Plan) -> Json:
    wanted = {"requests": dict(plan.requests), "limits": dict(plan.limits)}
    stated = {key: amounts for key, amounts in wanted.items() if amounts}
    return {"resourcesPerNode": stated} if stated else {}


def _patches(plan: Plan, code: Code, *, name: str, notes: Mapping[str, str]) -> list[Json]:
    annotations = {
        **({contract.REPLICAS_ANNOTATION: plan.replicas} if plan.replicas else {}),
        **({_VOLCANO_QUEUE: plan.wish.queue} if plan.queue == "volcano" else {}),
    }
    near = affinity.of(plan.gpu_types, placement=plan.wish.placement, job=name)
    jobs = [_job(place, code, notes=notes, near=near) for place in plan.places]
    template: Json = {
        **({"metadata": {"annotations": annotations}} if annotations else {}),
        "spec": {"replicatedJobs": jobs},
    }
    patches = [_patch(_MANAGER, template)]
    if plan.wish.patch:
        spec = dict(plan.wish.patch)
        users = [_replicated(place.job, {"spec": spec}) for place in plan.places]
        patches.append(_patch(PATCH_MANAGER, {"spec": {"replicatedJobs": users}}))
    return patches


def _patch(manager: str, template: Json) -> Json:
    return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def _replicated(job: str, pod: Json) -> Json:
    return {"name": job, "template": {"spec": {"template": pod}}}


def _job(place: Place, code: Code, *, notes: Mapping[str, str], near: Json) -> Json:
    spec = {
        **({"affinity": near} if near else {}),
        "volumes": [
            {"name": workspace.CODE_VOLUME, "configMap": {"name": code.name}},
            {"name": workspace.VOLUME, "emptyDir": {}},
        ],
        "containers": [{"name": place.container, "volumeMounts": _mounts(place)}],
    }
    return _replicated(place.job, {"metadata": {"annotations": dict(notes)}, "spec": spec})


def _mounts(place: Place) -> list[Json]:
    code = {"name": workspace.CODE_VOLUME, "mountPath": workspace.CODE_MOUNT, "readOnly": True}
    if not place.has_workspace:
        return [code, {"name": workspace.VOLUME, "mountPath": workspace.ROOT}]
    # What the runtime mounts there may be shared by all pods: what is a pod's own lies over it.
    return [
        code,
        *(
            {
                "name": workspace.VOLUME,
                "mountPath": f"{workspace.ROOT}/{folder}",
                "subPath": folder,
            }
            for folder in workspace.PER_POD
        ),
    ]
