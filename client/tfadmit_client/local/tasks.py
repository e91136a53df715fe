"""The tasks of a training on one machine, and the environment of each. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tfadmit_client.submit import words
from tfadmit_client.submit.objects import Code
from tfadmit_client.submit.wish import Wish
from tfadmit_trainer import contract, encoding, termination, workspace

_HOST: Final = "127.0.0.1"
# As much as Linux lets a variable have, with room for its name: nobody stores it anywhere.
_INLINE: Final = 120_000
_FILE: Final = "file://"
# What a shell may have from elsewhere, and what would be taken for this training's.
_FOREIGN: Final = (contract.TF_CONFIG_ENV, workspace.OUTPUT_URI_ENV, workspace.INPUTS_ENV)
# Options that mean something in a cluster only.
ONLY_CLUSTER: Final = (
    "cpu", "memory", "gpu", "image", "output", "deadline", "runtime", "patch", "queue", "gpu-type",
    "spread", "pack",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Task:
    """One process."""

    role: contract.Role
    index: int
    workspace: Path
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        """Its name for people, as `logs` has it."""
        return f"{self.role}-{self.index}"

    @property
    def reason(self) -> Path:
        """Where its launcher leaves why it failed."""
        return self.workspace / ".tfadmit" / "reason"


def sizes(wish: Wish) -> dict[contract.Role, int]:
    """Give how many tasks each role has."""
    wanted: dict[contract.Role, int] = {"worker": wish.workers or 1, **wish.roles}
    return {role: wanted[role] for role in contract.ROLES if wanted.get(role)}


def mistakes(wish: Wish, *, by_flags: frozenset[str]) -> Iterator[str]:
    """Say what can only be had in a cluster."""
    for name in ONLY_CLUSTER:
        if name in by_flags:
            yield f"--{name}: it means nothing with --local; leave one of the two out"
    for variable in wish.env:
        if variable.secret:
            yield (
                f"--env {variable.name}: with --local there is no Secret; set {variable.name} in "
                f"your shell and write --env {variable.name}"
            )
    for item in wish.data:
        if not _address(item).startswith(_FILE):
            yield (
                f"--data {item.line}: only pods fetch it; with --local name a folder or a file "
                f"here, as in --data {item.name}=file:///path"
            )
        elif not _path(item).exists():
            yield f"--data {item.line}: there is no {_path(item)} on this machine"


def make(
    wish: Wish,
    code: Code,
    *,
    folder: Path,
    name: str,
    ports: Sequence[int],
    environ: Mapping[str, str],
) -> list[Task]:
    """Make the tasks; there are as many ports as `sizes` has tasks."""
    addresses = iter(ports)
    cluster = contract.Cluster(
        **{
            role: tuple(f"{_HOST}:{next(addresses)}" for _ in range(count))
            for role, count in sizes(wish).items()
        }
    )
    base = {key: value for key, value in environ.items() if key not in _FOREIGN}
    found: list[Task] = []
    for role in contract.ROLES:
        for index in range(cluster.size(role)):
            own = folder / f"{role}-{index}"
            task = contract.Task(cluster=cluster, role=role, index=index)
            environment = {
                **base,
                **encoding.environment(task, max_inline_bytes=_INLINE),
                contract.ATTEMPT_ENV: "0",
                workspace.ROOT_ENV: str(own),
                workspace.CODE_MOUNT_ENV: str(folder),
                workspace.JOB_ENV: name,
                termination.PATH_ENV: str(own / ".tfadmit" / "reason"),
                **_optional(wish, code),
                **{item.name: item.value for item in wish.env},
            }
            found.append(Task(role=role, index=index, workspace=own, environment=environment))
    return found


def links(wish: Wish, task: Task) -> dict[Path, Path]:
    """Give the links that show a task its inputs: where each stands, and where it leads."""
    tree = workspace.Tree(root=str(task.workspace))
    return {Path(tree.input(item.name)): _path(item) for item in wish.data}


def _optional(wish: Wish, code: Code) -> dict[str, str]:
    wanted = {
        workspace.CODE_SHA256_ENV: code.sha256,
        workspace.INPUTS_ENV: ",".join(item.name for item in wish.data),
    }
    return {key: value for key, value in wanted.items() if value}


def _path(item: words.Input) -> Path:
    return Path(_address(item).removeprefix(_FILE))


def _address(item: words.Input) -> str:
    return item.line.partition("=")[2]
