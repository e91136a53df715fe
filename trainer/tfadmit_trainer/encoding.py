"""Encoding and decoding of what crosses from the webhook to the library, side by side.

Here are the compact cluster, TF_CONFIG and the environment of a task; the names themselves are in
`contract`. Standard library only, no I/O: both sides run this module, in images that are upgraded
at different times.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tfadmit_trainer import contract, pattern

_HOSTS_ENV: Final[tuple[tuple[contract.Role, str], ...]] = (
    ("chief", contract.CHIEF_HOSTS_ENV),
    ("worker", contract.WORKER_HOSTS_ENV),
    ("ps", contract.PS_HOSTS_ENV),
)


# --- the compact cluster -----------------------------------------------------------------------


def encode(cluster: contract.Cluster) -> str:
    """Write a cluster in compact form: `{"v":1,"worker":["job-node-0-{0..3}.job:12345"]}`."""
    document: dict[str, object] = {"v": contract.VERSION}
    for role in contract.ROLES:
        if patterns := cluster.patterns(role):
            document[role] = patterns
    return _dump(document)


def decode(text: str) -> contract.Cluster:
    """Read a cluster in compact form. A missing `v` stands for the current version.

    Raises:
        contract.ContractError: the text is no such JSON, of another version, or has no task.
    """
    document = _load_object(text, what="the compact cluster")
    version = document.pop("v", contract.VERSION)
    if version != contract.VERSION or isinstance(version, bool):
        raise contract.ContractError(
            f"the compact cluster has version {version!r}, this tfadmit reads version "
            f"{contract.VERSION}: use the same tfadmit in the image as in the webhook"
        )
    if unknown := sorted(set(document) - set(contract.ROLES)):
        raise contract.ContractError(
            f"unknown role {unknown[0]!r}: use {', '.join(contract.ROLES)}"
        )
    cluster = contract.Cluster(**{role: _patterns(role, value) for role, value in document.items()})
    _check_sizes(cluster)
    return cluster


def _patterns(role: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise contract.ContractError(f'{role} must be a list of addresses: "{role}":["host:port"]')
    try:
        for item in value:
            pattern.parse(item)
    except pattern.PatternError as error:
        raise contract.ContractError(f"{role}: {error}") from error
    return tuple(value)


def _check_sizes(cluster: contract.Cluster) -> None:
    sizes = {role: cluster.size(role) for role in contract.ROLES}
    if not any(sizes.values()):
        raise contract.ContractError('the compact cluster has no task: {"worker":["host:port"]}')
    if sum(sizes.values()) > pattern.MAX_TASKS:
        raise contract.ContractError(
            f"the compact cluster has more than {pattern.MAX_TASKS:,} tasks"
        )
    for role in ("chief", "evaluator"):
        if sizes[role] > 1:
            raise contract.ContractError(
                f"TensorFlow allows one {role}, the cluster has {sizes[role]}"
            )


# --- TF_CONFIG ---------------------------------------------------------------------------------


def tf_config(task: contract.Task) -> str:
    """Write the TF_CONFIG of a task, as TensorFlow's TFConfigClusterResolver reads it."""
    seen = task.cluster.seen_by(task.role)
    head = _cluster_json(seen)
    return f'{{"cluster":{head},"task":{{"type":"{task.role}","index":{task.index}}}}}'


def tf_config_length(cluster: contract.Cluster) -> int:
    """Give the number of bytes of a cluster's largest TF_CONFIG, without building it.

    All tasks of a cluster get the same answer, so that either all or none have it inline.
    """
    roles = [role for role in contract.ROLES if cluster.patterns(role)]
    total = len('{"cluster":{},"task":{"type":"evaluator","index":}}') + len(str(pattern.MAX_TASKS))
    for role in roles:
        count = cluster.size(role)
        # "role":[ … ], and for each address two quotes and a comma
        total += len(role) + 6 + pattern.length(cluster.patterns(role)) + 3 * count
    return total


@functools.lru_cache(maxsize=512)
def _cluster_json(cluster: contract.Cluster) -> str:
    lists = {role: list(pattern.expand(cluster.patterns(role))) for role in contract.ROLES}
    return _dump({role: hosts for role, hosts in lists.items() if hosts})


@functools.lru_cache(maxsize=512)
def _hosts(patterns: tuple[str, ...]) -> str:
    return ",".join(pattern.expand(patterns))


# --- the environment of a task -----------------------------------------------------------------


def environment(task: contract.Task, *, max_inline_bytes: int) -> dict[str, str]:
    """Write the environment of a task, in the order in which it is injected.

    Host lists and TF_CONFIG are left out when TF_CONFIG could exceed `max_inline_bytes`: Linux
    refuses one environment string over 128 KiB (MAX_ARG_STRLEN), and every pod object carries its
    own copy. TFADMIT_CLUSTER is always there.
    """
    shared = _shared(task.cluster, task.role == "evaluator", max_inline_bytes)
    env = {
        contract.TASK_TYPE_ENV: task.role,
        contract.TASK_INDEX_ENV: str(task.index),
        contract.NUM_WORKERS_ENV: shared.workers,
        contract.PORT_ENV: str(pattern.port(task.cluster.patterns(task.role), task.index)),
        contract.CLUSTER_ENV: shared.compact,
        **shared.hosts,
    }
    if shared.inline:
        env[contract.TF_CONFIG_ENV] = tf_config(task)
    return env


@dataclass(frozen=True)
class _Shared:
    """What all tasks of a cluster find in their environment alike."""

    workers: str
    compact: str
    hosts: Mapping[str, str]
    inline: bool


@functools.lru_cache(maxsize=512)
def _shared(cluster: contract.Cluster, by_evaluator: bool, max_inline_bytes: int) -> _Shared:  # noqa: FBT001 - part of the cache's key
    seen = cluster.seen_by("evaluator" if by_evaluator else "worker")
    inline = fits(cluster, max_inline_bytes=max_inline_bytes)
    known = [(name, seen.patterns(role)) for role, name in _HOSTS_ENV] if inline else []
    return _Shared(
        workers=str(seen.size("worker")),
        compact=encode(seen),
        hosts={name: _hosts(patterns) for name, patterns in known if patterns},
        inline=inline,
    )


def fits(cluster: contract.Cluster, *, max_inline_bytes: int) -> bool:
    """Whether TF_CONFIG and the host lists of this cluster are carried inline."""
    return tf_config_length(cluster) <= max_inline_bytes


def task_from(environ: Mapping[str, str]) -> contract.Task:
    """Read back what `environment()` wrote, from the variables that are always there.

    Raises:
        contract.ContractError: a variable is missing or does not follow the contract.
    """
    needed = (contract.CLUSTER_ENV, contract.TASK_TYPE_ENV, contract.TASK_INDEX_ENV)
    missing = [name for name in needed if name not in environ]
    if missing:
        raise contract.ContractError(
            f"{', '.join(missing)} not set: was this pod admitted by tfadmit?"
        )
    role, index = environ[contract.TASK_TYPE_ENV], environ[contract.TASK_INDEX_ENV]
    cluster = decode(environ[contract.CLUSTER_ENV])
    for known in contract.ROLES:
        if role == known and index.isascii() and index.isdigit():
            if int(index) < cluster.size(known):
                return contract.Task(cluster=cluster, role=known, index=int(index))
            raise contract.ContractError(f"{contract.CLUSTER_ENV} has no {role} {index}")
    raise contract.ContractError(
        f"{contract.TASK_TYPE_ENV}={role!r} {contract.TASK_INDEX_ENV}={index!r} name no task"
    )


def _load_object(text: str, *, what: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise contract.ContractError(f"{what} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise contract.ContractError(f'{what} must be a JSON object: {{"worker":["host:port"]}}')
    return document


def _dump(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
