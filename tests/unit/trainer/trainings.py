"""Tasks of trainings on this machine, for tests without TensorFlow."""

from harness import loopback
from tfadmit_trainer import context
from tfadmit_trainer.contract import Cluster, Role, Task


def address() -> str:
    return f"127.0.0.1:{loopback.free_port()}"


def workers(count: int) -> Cluster:
    return Cluster(worker=tuple(address() for _ in range(count)))


def task(
    cluster: Cluster, index: int = 0, *, role: Role = "worker", attempt: int = 0
) -> context.TaskContext:
    return context.of(
        Task(cluster, role, index), source="tfadmit", environ={"TFADMIT_ATTEMPT": str(attempt)}
    )
