"""The wire contract between the webhook and the library in the training container.

Every name that crosses a process boundary stands here, once, with who writes it, who reads it and
whether a user may set it, and what the names are about: clusters and their tasks. `encoding` writes
and reads them. Standard library only, no I/O: the webhook imports this module, and it runs in any
training image with Python 3.10 or newer.

The two sides run in different images and are upgraded at different times, so a change of meaning
needs a new `VERSION`; names are only ever added.
"""

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
# The pod webhook writes them before the user's own variables, in the order of
# `encoding.environment()`. A user may set any of them; his value wins.

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
