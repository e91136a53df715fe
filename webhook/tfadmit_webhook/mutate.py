"""What an admitted object should have that it has not yet, as a minimal patch on the raw object.

Pure; `patch` knows how an addition is expressed. The user's values win: a variable that a container
already has is never touched. Applying twice equals applying once.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tfadmit_trainer import contract, encoding
from tfadmit_webhook import network, patch, raw, storage, storage_pod, workload
from tfadmit_webhook import runtime as runtime_view
from tfadmit_webhook.decision import Operation, Reason, Refusal
from tfadmit_webhook.settings import NetworkProfile, Settings

# Linux: 32 pages for one environment string, its name and closing zero byte included.
_MAX_ARG_STRLEN = 128 * 1024


def pod(
    view: workload.Pod, task: contract.Task, *, source: str, settings: Settings
) -> list[Operation] | Refusal:
    """Give the patch that makes a pod the given task."""
    targets = workload.target_containers(view)
    if refusal := _missing_containers(view, targets):
        return refusal
    stated = view.annotations.get(contract.NETWORK_ANNOTATION)
    profile = network.choose(
        settings.network_profiles,
        resources=(name for target in targets for name in target.resources()),
        stated=stated,
    )
    networks = network.attachments(
        profile=profile,
        stated=stated,
        existing=view.annotations.get(contract.NETWORKS_ANNOTATION),
        namespace=view.namespace,
    )
    if isinstance(networks, Refusal):
        return networks
    wish = storage.of_pod(view, settings=settings.transfer)
    if isinstance(wish, Refusal):
        return wish
    plan = _plan(view, wish, task, targets, settings=settings) if wish else None
    env = _environment(view, task, profile, settings=settings)
    if plan:
        env |= storage_pod.environment(plan)
    if refusal := _too_long(env):
        return refusal
    status = _status(task, env, targets, source=source, profile=profile, plan=plan)
    annotations = {contract.STATUS_ANNOTATION: status}
    if networks is not None:
        annotations[contract.NETWORKS_ANNOTATION] = networks
    operations = patch.set_entries(view.content, ("metadata", "annotations"), annotations)
    for target in targets:
        operations += _env_operations(view, target, env)
    # Last, because new init containers change the places of those that are there.
    return [*operations, *storage_pod.operations(plan)] if plan else operations


def runtime(content: raw.JsonObject) -> list[Operation]:
    """Give the patch that copies a runtime's framework label to where the pods get it from.

    Trainer copies none of a runtime's labels; those of `template.metadata` reach the JobSet and
    those of a pod template reach its pods.
    """
    template: raw.Path = ("spec", "template")
    paths = [template] if isinstance(raw.at(content, template), dict) else []
    paths += [job.template_path for job in runtime_view.jobs(content) if job.is_task]
    label = {contract.FRAMEWORK_LABEL: contract.FRAMEWORK}
    operations: list[Operation] = []
    for path in paths:
        labels: raw.Path = (*path, "metadata", "labels")
        # Another framework's label was set on purpose; it keeps the pods out of the cluster.
        if contract.FRAMEWORK_LABEL not in raw.strings(raw.at(content, labels)):
            operations += patch.set_entries(content, labels, label)
    return operations


def _missing_containers(
    view: workload.Pod, targets: Sequence[workload.Container]
) -> Refusal | None:
    present = {target.name for target in targets}
    missing = [name for name in workload.named_containers(view) if name not in present]
    if not missing:
        return None
    known = ", ".join(container.name for container in view.containers())
    return Refusal(
        reason=Reason.ANNOTATION_INVALID,
        message=(
            f"annotation {contract.CONTAINERS_ANNOTATION} names {missing[0]!r}, "
            f"and the pod's containers are {known}: name one of these, or remove the annotation"
        ),
    )


def _environment(
    view: workload.Pod,
    task: contract.Task,
    profile: NetworkProfile | None,
    *,
    settings: Settings,
) -> dict[str, str]:
    env = encoding.environment(task, max_inline_bytes=settings.max_inline_bytes)
    if attempt := view.annotations.get(contract.RESTART_ATTEMPT_ANNOTATION):
        env[contract.ATTEMPT_ENV] = attempt
    return {**env, **(profile.env if profile else {})}


def _plan(
    view: workload.Pod,
    wish: storage.Wish,
    task: contract.Task,
    targets: Sequence[workload.Container],
    *,
    settings: Settings,
) -> storage_pod.Plan:
    return storage_pod.Plan(
        view=view, wish=wish, task=task, targets=targets, settings=settings.transfer
    )


def _too_long(env: Mapping[str, str]) -> Refusal | None:
    """Refuse a cluster whose compact form no process could be started with."""
    length = len(contract.CLUSTER_ENV) + len(env[contract.CLUSTER_ENV]) + 2  # "=" and the zero byte
    if length <= _MAX_ARG_STRLEN:
        return None
    return Refusal(
        reason=Reason.CLUSTER_INVALID,
        message=(
            f"{contract.CLUSTER_ENV} would have {length:,} bytes, and Linux starts no process with "
            f"a variable of more than {_MAX_ARG_STRLEN:,}: write ranges, "
            "host-{0..4095}.svc:12345, or use fewer replicated jobs with more replicas or "
            "completions each"
        ),
    )


def _env_operations(
    view: workload.Pod, target: workload.Container, env: Mapping[str, str]
) -> list[Operation]:
    """Put what is missing before the user's variables, so that `$(TF_TASK_INDEX)` expands there."""
    present = target.env()
    missing = [{"name": name, "value": value} for name, value in env.items() if name not in present]
    return patch.prepend(view.content, (*target.path, "env"), missing)


def _status(
    task: contract.Task,
    env: Mapping[str, str],
    targets: Sequence[workload.Container],
    *,
    source: str,
    profile: NetworkProfile | None,
    plan: storage_pod.Plan | None,
) -> str:
    """Say in one short value what was decided.

    `kept` names the variables whose value is not ours. It is judged by value, so that a second
    round over our own output says the same.
    """
    own = [target.env() for target in targets]
    kept = [
        name
        for name, value in env.items()
        if any(name in present and present[name].get("value") != value for present in own)
    ]
    status: dict[str, Any] = {
        "v": contract.VERSION,
        "role": task.role,
        "index": task.index,
        "tasks": task.cluster.total,
        "source": source,
        "inline": contract.TF_CONFIG_ENV in env,
    }
    if profile:
        status["network"] = profile.name
    if plan:
        status["transfer"] = storage_pod.status(plan)
    if kept:
        status["kept"] = kept
    return json.dumps(status, separators=(",", ":"))
