"""Which runs of which containers are shown. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfadmit_client import fault
from tfadmit_client.logs.source import Run
from tfadmit_client.watch import container, seen, task
from tfadmit_webhook import raw, workload

# Containers that tfadmit adds; what they fetch before the program is part of the story.
_OURS = "tfadmit-"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the user asked for."""

    replicas: Sequence[str] = ()
    """Roles, `worker`, or tasks, `worker-1`; none for all."""

    container: str = ""
    """Another container than the program's."""

    attempt: int | None = None

    def has(self, replica: str) -> bool:
        """Whether a task is asked for."""
        role = replica.rpartition("-")[0]
        return not self.replicas or replica in self.replicas or role in self.replicas


def check(choice: Choice, job: seen.Seen) -> None:
    """Refuse names that the job does not have, once it is known which it has.

    Raises:
        ClientError: with those that there are.
    """
    tasks = task.tasks(job)
    if not tasks:
        return
    known = {item.name for item in tasks} | {item.role for item in tasks}
    if unknown := [word for word in choice.replicas if word not in known]:
        roles: dict[str, int] = {}
        for item in tasks:
            roles[item.role] = roles.get(item.role, 0) + 1
        have = ", ".join(
            f"{role}-0" if number == 1 else f"{role}-0 to {role}-{number - 1}"
            for role, number in roles.items()
        )
        raise fault.ClientError(f"{job.name} has no task {unknown[0]}; it has {have}")
    names = {item.name for one in tasks for item in one.containers}
    if choice.container and names and choice.container not in names:
        raise fault.ClientError(
            f"{job.name} has no container {choice.container}; it has {', '.join(sorted(names))}"
        )


def runs(job: seen.Seen, choice: Choice) -> Iterator[Run]:
    """Give all runs that have a log now, of tasks in their order and of each from the oldest on."""
    order = {item.name: index for index, item in enumerate(task.tasks(job))}
    named = sorted(
        task.named(job.pods, job), key=lambda item: (order.get(item[0], len(order)), item[0])
    )
    for name, pod in named:
        attempt = task.attempt(pod)
        if choice.has(name) and choice.attempt in (None, attempt):
            yield from _of_pod(pod, choice, replica=name, attempt=attempt)


def _of_pod(pod: raw.JsonObject, choice: Choice, *, replica: str, attempt: int) -> Iterator[Run]:
    namespace, name = seen.key(pod)
    for item in _containers(pod, choice.container):
        numbers = ([item.restarts - 1] if item.restarts else []) + (
            [item.restarts] if item.started else []
        )
        for number in numbers:
            yield Run(
                namespace=namespace,
                pod=name,
                uid=seen.uid(pod),
                container=item.name,
                number=number,
                replica=replica,
                attempt=attempt,
            )


def _containers(pod: raw.JsonObject, named: str) -> list[container.Container]:
    found = container.containers(pod)
    if named:
        return [item for item in found if item.name == named]
    targets = {item.name for item in workload.target_containers(workload.pod(pod, namespace=""))}
    return [
        item
        for item in found
        if item.name in targets or (item.init and not item.sidecar and item.name.startswith(_OURS))
    ]
