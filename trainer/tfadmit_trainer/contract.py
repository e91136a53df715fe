"""The wire contract between the webhook and the library in the training container.

Every name that crosses a process boundary stands here, once, with who writes it, who reads it and
whether a user may set it. Encoding and decoding stand side by side. Standard library only, no I/O:
the webhook imports this module, and it runs in any training image with Python 3.10 or newer.

The two sides run in different images and are upgraded at different times, so a change of meaning
needs a new `VERSION`; names are only ever added.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from tfadmit_trainer import pattern

VERSION: Final = 1

Role = Literal["chief", "worker", "ps", "evaluator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

# --- labels and annotations --------------------------------------------------------------------

# Opts in. Users set it on the runtime; the runtime webhook copies it to the JobSet template and to
# the pod templates of the TensorFlow cluster; the API server and the pod webhook read it.
FRAMEWORK_LABEL: Final = "trainer.kubeflow.org/framework"
FRAMEWORK: Final = "tensorflow"
# The role of a replicated job's pods. Users set it on a pod template; the pod webhook reads it.
ROLE_LABEL: Final = "tfadmit.dev/role"
# The number of workers, for a pod that the webhook did not see. Users set it on a pod template; the
# library reads it by the downward API.
NUM_WORKERS_LABEL: Final = "tfadmit.dev/num-workers"
# "false" leaves a pod as it is. Users set it; the pod webhook reads it.
INJECT_ANNOTATION: Final = "tfadmit.dev/inject"
# Names of the containers that get the environment, separated by commas. Users set it.
CONTAINERS_ANNOTATION: Final = "tfadmit.dev/containers"
# The rendezvous port. Users set it on a pod template.
PORT_ANNOTATION: Final = "tfadmit.dev/port"
# Networks to attach, as Multus writes them, or "none". Users set it; the pod webhook reads it.
NETWORK_ANNOTATION: Final = "tfadmit.dev/network"
NO_NETWORK: Final = "none"
# "fqdn" or "short". Users set it on a pod template.
ADDRESS_ANNOTATION: Final = "tfadmit.dev/address"
# The cluster in compact form, stated instead of looked up. Users set it.
CLUSTER_ANNOTATION: Final = "tfadmit.dev/cluster"
# How many tasks roles have, `ps=2,evaluator=0`. Users set it on a JobSet, through a TrainJob's
# runtimePatches or a runtime's `template.metadata`; the JobSet webhook reads it.
REPLICAS_ANNOTATION: Final = "tfadmit.dev/replicas"
# What was decided. The webhooks write it to pods and JobSets; people and the command line read it.
# Not for users.
STATUS_ANNOTATION: Final = "tfadmit.dev/status"

# What `tfadmit run` writes. Users may set the first three on a pod template, too.
# Inputs to fetch before the program, NAME=URI, one a line. The pod webhook reads it.
DATA_ANNOTATION: Final = "tfadmit.dev/data"
# Base URI of the results; those of a job go below <base>/<job>. The pod webhook reads it.
OUTPUT_ANNOTATION: Final = "tfadmit.dev/output"
# Name of the Secret with the credentials for both. The pod webhook reads it.
STORE_SECRET_ANNOTATION: Final = "tfadmit.dev/store-secret"  # noqa: S105 - a name
# SHA-256 of the code archive, on the TrainJob. The command line reads it.
CODE_ANNOTATION: Final = "tfadmit.dev/code"
# The program as a JSON list, on the TrainJob. The command line reads it.
COMMAND_ANNOTATION: Final = "tfadmit.dev/command"
# Commit and state of the code's repository as JSON, on the TrainJob. The command line reads it.
SOURCE_ANNOTATION: Final = "tfadmit.dev/source"
# The options of `tfadmit run` as JSON, on the TrainJob. `tfadmit run --from` reads it.
OPTIONS_ANNOTATION: Final = "tfadmit.dev/options"
# What `tfadmit run` takes where a user says nothing. The platform team sets them on a runtime.
DEFAULT_IMAGE_ANNOTATION: Final = "tfadmit.dev/default-image"
DEFAULT_CPU_ANNOTATION: Final = "tfadmit.dev/default-cpu"
DEFAULT_MEMORY_ANNOTATION: Final = "tfadmit.dev/default-memory"
DEFAULT_GPU_ANNOTATION: Final = "tfadmit.dev/default-gpu"
DEFAULT_OUTPUT_ANNOTATION: Final = "tfadmit.dev/default-output"
DEFAULT_STORE_SECRET_ANNOTATION: Final = "tfadmit.dev/default-store-secret"  # noqa: S105 - a name
# The label of nodes that `--gpu-type` goes by, set there, too.
GPU_TYPE_LABEL_ANNOTATION: Final = "tfadmit.dev/gpu-type-label"
PREFIX: Final = "tfadmit.dev/"
OWN_LABELS: Final = (ROLE_LABEL, NUM_WORKERS_LABEL)
OWN_ANNOTATIONS: Final = (
    INJECT_ANNOTATION,
    CONTAINERS_ANNOTATION,
    PORT_ANNOTATION,
    NETWORK_ANNOTATION,
    ADDRESS_ANNOTATION,
    CLUSTER_ANNOTATION,
    STATUS_ANNOTATION,
    DATA_ANNOTATION,
    OUTPUT_ANNOTATION,
    STORE_SECRET_ANNOTATION,
    CODE_ANNOTATION,
    COMMAND_ANNOTATION,
    SOURCE_ANNOTATION,
)
# The network attachments of a pod. Users and the pod webhook write it; Multus reads it.
NETWORKS_ANNOTATION: Final = "k8s.v1.cni.cncf.io/networks"
# A container port of this name is the rendezvous port, as it was for TFJob. Users set it.
PORT_NAME: Final = "tfjob-port"
DEFAULT_PORT: Final = 12345

# Written by Kubernetes, JobSet, Trainer and users of Kueue; read by the webhook.
JOBSET_NAME_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID_ANNOTATION: Final = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB_LABEL: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX_LABEL: Final = "jobset.sigs.k8s.io/job-index"
RESTART_ATTEMPT_ANNOTATION: Final = "jobset.sigs.k8s.io/restart-attempt"
COMPLETION_INDEX_ANNOTATION: Final = "batch.kubernetes.io/job-completion-index"
ANCESTOR_LABEL: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

# --- environment variables ---------------------------------------------------------------------
# The pod webhook writes them before the user's own variables, in the order of `environment()`.
# A user may set any of them; his value wins.

TASK_TYPE_ENV: Final = "TF_TASK_TYPE"  # role of this task
TASK_INDEX_ENV: Final = "TF_TASK_INDEX"  # index of this task within its role
NUM_WORKERS_ENV: Final = "TF_NUM_WORKERS"  # number of tasks in the role worker
PORT_ENV: Final = "TF_WORKER_PORT"  # port of this task; also read from pod templates
CHIEF_HOSTS_ENV: Final = "TF_CHIEF_HOSTS"  # host:port,… while they fit
WORKER_HOSTS_ENV: Final = "TF_WORKER_HOSTS"
PS_HOSTS_ENV: Final = "TF_PS_HOSTS"
# How often JobSet has started the whole training again, from 0; only in pods of a JobSet.
ATTEMPT_ENV: Final = "TFADMIT_ATTEMPT"
CLUSTER_ENV: Final = "TFADMIT_CLUSTER"  # the compact cluster, always; the library expands it
TF_CONFIG_ENV: Final = "TF_CONFIG"  # TensorFlow's own standard JSON, while it fits

_HOSTS_ENV: Final[tuple[tuple[Role, str], ...]] = (
    ("chief", CHIEF_HOSTS_ENV),
    ("worker", WORKER_HOSTS_ENV),
    ("ps", PS_HOSTS_ENV),
)


class ContractError(ValueError):
    """Text that does not follow the contract; the message says what, where and what is expected."""


@dataclass(frozen=True)
class Cluster:
    """Address patterns by role, in the order of task indexes (see `pattern`)."""

    chief: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()
    ps: tuple[str, ...] = ()
    evaluator: tuple[str, ...] = ()

    def patterns(self, role: Role) -> tuple[str, ...]:
        """Give the patterns of one role."""
        patterns: tuple[str, ...] = getattr(self, role)
        return patterns

    def size(self, role: Role) -> int:
        """How many tasks a role has."""
        return pattern.size(self.patterns(role))

    @property
    def total(self) -> int:
        """How many tasks there are in all roles."""
        return sum(self.size(role) for role in ROLES)

    def address(self, role: Role, index: int) -> str:
        """Give `host:port` of one task; IndexError when there is none."""
        return pattern.at(self.patterns(role), index)

    def seen_by(self, role: Role) -> "Cluster":
        """Give the cluster as a task of this role may know it.

        The evaluator is no member of the training: it stands only in its own TF_CONFIG. Listed in
        everybody's, TensorFlow 2's ParameterServerStrategy waits for it without end.
        """
        if role == "evaluator":
            return self
        return Cluster(chief=self.chief, worker=self.worker, ps=self.ps)


@dataclass(frozen=True)
class Task:
    """One task of a cluster."""

    cluster: Cluster
    role: Role
    index: int


# --- the compact cluster -----------------------------------------------------------------------


def encode(cluster: Cluster) -> str:
    """Write a cluster in compact form: `{"v":1,"worker":["job-node-0-{0..3}.job:12345"]}`."""
    document: dict[str, object] = {"v": VERSION}
    for role in ROLES:
        if patterns := cluster.patterns(role):
            document[role] = patterns
    return _dump(document)


def decode(text: str) -> Cluster:
    """Read a cluster in compact form. A missing `v` stands for the current version.

    Raises:
        ContractError: the text is no such JSON, of another version, or has no task.
    """
    document = _load_object(text, what="the compact cluster")
    version = document.pop("v", VERSION)
    if version != VERSION or isinstance(version, bool):
        raise ContractError(
            f"the compact cluster has version {version!r}, this tfadmit reads version {VERSION}: "
            "use the same tfadmit in the image as in the webhook"
        )
    if unknown := sorted(set(document) - set(ROLES)):
        raise ContractError(f"unknown role {unknown[0]!r}: use {', '.join(ROLES)}")
    cluster = Cluster(**{role: _patterns(role, value) for role, value in document.items()})
    _check_sizes(cluster)
    return cluster


def _patterns(role: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ContractError(f'{role} must be a list of addresses: "{role}":["host:port"]')
    try:
        for item in value:
            pattern.parse(item)
    except pattern.PatternError as error:
        raise ContractError(f"{role}: {error}") from error
    return tuple(value)


def _check_sizes(cluster: Cluster) -> None:
    sizes = {role: cluster.size(role) for role in ROLES}
    if not any(sizes.values()):
        raise ContractError('the compact cluster has no task: {"worker":["host:port"]}')
    if sum(sizes.values()) > pattern.MAX_TASKS:
        raise ContractError(f"the compact cluster has more than {pattern.MAX_TASKS:,} tasks")
    for role in ("chief", "evaluator"):
        if sizes[role] > 1:
            raise ContractError(f"TensorFlow allows one {role}, the cluster has {sizes[role]}")


# --- TF_CONFIG ---------------------------------------------------------------------------------


def tf_config(task: Task) -> str:
    """Write the TF_CONFIG of a task, as TensorFlow's TFConfigClusterResolver reads it."""
    seen = task.cluster.seen_by(task.role)
    head = _cluster_json(seen)
    return f'{{"cluster":{head},"task":{{"type":"{task.role}","index":{task.index}}}}}'


def tf_config_length(cluster: Cluster) -> int:
    """Give the number of bytes of a cluster's largest TF_CONFIG, without building it.

    All tasks of a cluster get the same answer, so that either all or none have it inline.
    """
    roles = [role for role in ROLES if cluster.patterns(role)]
    total = len('{"cluster":{},"task":{"type":"evaluator","index":}}') + len(str(pattern.MAX_TASKS))
    for role in roles:
        count = cluster.size(role)
        # "role":[ … ], and for each address two quotes and a comma
        total += len(role) + 6 + pattern.length(cluster.patterns(role)) + 3 * count
    return total


@functools.lru_cache(maxsize=512)
def _cluster_json(cluster: Cluster) -> str:
    lists = {role: list(pattern.expand(cluster.patterns(role))) for role in ROLES}
    return _dump({role: hosts for role, hosts in lists.items() if hosts})


@functools.lru_cache(maxsize=512)
def _hosts(patterns: tuple[str, ...]) -> str:
    return ",".join(pattern.expand(patterns))


# --- the environment of a task -----------------------------------------------------------------


def environment(task: Task, *, max_inline_bytes: int) -> dict[str, str]:
    """Write the environment of a task, in the order in which it is injected.

    Host lists and TF_CONFIG are left out when TF_CONFIG could exceed `max_inline_bytes`: Linux
    refuses one environment string over 128 KiB (MAX_ARG_STRLEN), and every pod object carries its
    own copy. TFADMIT_CLUSTER is always there.
    """
    shared = _shared(task.cluster, task.role == "evaluator", max_inline_bytes)
    env = {
        TASK_TYPE_ENV: task.role,
        TASK_INDEX_ENV: str(task.index),
        NUM_WORKERS_ENV: shared.workers,
        PORT_ENV: str(pattern.port(task.cluster.patterns(task.role), task.index)),
        CLUSTER_ENV: shared.compact,
        **shared.hosts,
    }
    if shared.inline:
        env[TF_CONFIG_ENV] = tf_config(task)
    return env


@dataclass(frozen=True)
class _Shared:
    """What all tasks of a cluster find in their environment alike."""

    workers: str
    compact: str
    hosts: Mapping[str, str]
    inline: bool


@functools.lru_cache(maxsize=512)
def _shared(cluster: Cluster, by_evaluator: bool, max_inline_bytes: int) -> _Shared:  # noqa: FBT001 - part of the cache's key
    seen = cluster.seen_by("evaluator" if by_evaluator else "worker")
    inline = fits(cluster, max_inline_bytes=max_inline_bytes)
    known = [(name, seen.patterns(role)) for role, name in _HOSTS_ENV] if inline else []
    return _Shared(
        workers=str(seen.size("worker")),
        compact=encode(seen),
        hosts={name: _hosts(patterns) for name, patterns in known if patterns},
        inline=inline,
    )


def fits(cluster: Cluster, *, max_inline_bytes: int) -> bool:
    """Whether TF_CONFIG and the host lists of this cluster are carried inline."""
    return tf_config_length(cluster) <= max_inline_bytes


def task_from(environ: Mapping[str, str]) -> Task:
    """Read back what `environment()` wrote, from the variables that are always there.

    Raises:
        ContractError: a variable is missing or does not follow the contract.
    """
    missing = [name for name in (CLUSTER_ENV, TASK_TYPE_ENV, TASK_INDEX_ENV) if name not in environ]
    if missing:
        raise ContractError(f"{', '.join(missing)} not set: was this pod admitted by tfadmit?")
    role, index = environ[TASK_TYPE_ENV], environ[TASK_INDEX_ENV]
    cluster = decode(environ[CLUSTER_ENV])
    for known in ROLES:
        if role == known and index.isascii() and index.isdigit():
            if int(index) < cluster.size(known):
                return Task(cluster=cluster, role=known, index=int(index))
            raise ContractError(f"{CLUSTER_ENV} has no {role} {index}")
    raise ContractError(f"{TASK_TYPE_ENV}={role!r} {TASK_INDEX_ENV}={index!r} name no task")


def _load_object(text: str, *, what: str) -> dict[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{what} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ContractError(f'{what} must be a JSON object: {{"worker":["host:port"]}}')
    return document


def _dump(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
