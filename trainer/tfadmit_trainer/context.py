"""What a task knows of itself: role, index, peers, attempt and directories, as one frozen value.

Pure: computed from an environment that is handed over. Where the facts come from when our webhook
did not write them is decided in `setup`; TensorFlow is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

from tfadmit_trainer import contract, pattern
from tfadmit_trainer.contract import Cluster, Role, Task

Source = Literal["tfadmit", "tf_config", "jobset", "discovery", "single"]

# Where a training leaves what outlives it. Users set them; nothing else reads them.
OUTPUT_DIR_ENV: Final = "TFADMIT_OUTPUT_DIR"
DEFAULT_OUTPUT_DIR: Final = "/workspace/output"


@dataclass(frozen=True, kw_only=True)
class Directories:
    """Where checkpoints, TensorBoard logs and the model go."""

    checkpoints: str
    logs: str
    model: str


@dataclass(frozen=True, kw_only=True)
class TaskContext:
    """One task of a training."""

    task: Task
    source: Source
    """Which facts the cluster comes from."""

    attempt: int
    """How often the whole training was started again, counted from 0."""

    directories: Directories

    @property
    def role(self) -> Role:
        """The role of this task."""
        return self.task.role

    @property
    def index(self) -> int:
        """The index of this task within its role."""
        return self.task.index

    @property
    def cluster(self) -> Cluster:
        """The cluster as this task may know it."""
        return self.task.cluster

    @property
    def address(self) -> str:
        """`host:port` of this task."""
        return self.cluster.address(self.role, self.index)

    @property
    def is_chief(self) -> bool:
        """Whether this task saves and prints: the chief, or worker 0 where there is none."""
        if self.cluster.size("chief"):
            return self.role == "chief"
        return self.role == "worker" and self.index == 0

    @property
    def is_distributed(self) -> bool:
        """Whether there is anybody else to train with."""
        return self.members > 1

    @property
    def members(self) -> int:
        """Number of tasks that train together; the evaluator is none of them."""
        return self.cluster.seen_by("worker").total

    @property
    def replicas(self) -> int:
        """Number of tasks that compute gradients: chief and workers."""
        return self.cluster.size("chief") + self.cluster.size("worker")

    def addresses(self, role: Role) -> list[str]:
        """Give `host:port` of every task of a role, in the order of indexes."""
        return list(pattern.expand(self.cluster.patterns(role)))


def directories(environ: Mapping[str, str]) -> Directories:
    """Give the directories of a training: below one that the user names, or the usual one."""
    base = PurePosixPath(environ.get(OUTPUT_DIR_ENV) or DEFAULT_OUTPUT_DIR)
    return Directories(
        checkpoints=str(base / "checkpoints"),
        logs=str(base / "logs"),
        model=str(base / "model"),
    )


def of(task: Task, *, source: Source, environ: Mapping[str, str]) -> TaskContext:
    """Make the context of a task."""
    attempt = environ.get(contract.ATTEMPT_ENV, "")
    return TaskContext(
        task=task,
        source=source,
        attempt=int(attempt) if attempt.isascii() and attempt.isdigit() else 0,
        directories=directories(environ),
    )
