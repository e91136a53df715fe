"""The steps of `tfadmit run --local`: a folder per task, processes, and what came of them."""

import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tfadmit_client import fault
from tfadmit_client.console import terminal
from tfadmit_client.local import asked, processes, tasks
from tfadmit_client.submit.objects import Code
from tfadmit_client.submit.wish import Wish
from tfadmit_trainer import workspace

FOLDER: Final = ".tfadmit"
# As a shell counts what a signal has ended.
_BY_SIGNAL: Final = 128


def run(
    wish: Wish, code: Code, *, name: str, by_flags: frozenset[str], environ: Mapping[str, str]
) -> int:
    """Run a training here; give the exit code.

    Raises:
        ClientError: it asks for what only a cluster has, or the folder cannot be made.
    """
    if mistakes := list(tasks.mistakes(wish, by_flags=by_flags)):
        raise fault.ClientError("\n".join(mistakes))
    here = Path.cwd()
    folder = here / FOLDER / name
    count = sum(tasks.sizes(wish).values())
    try:
        ports = list(_ports(count))
    except OSError as error:
        raise _too_many(count, error) from error
    found = tasks.make(wish, code, folder=folder, name=name, ports=ports, environ=environ)
    try:
        _lay_out(wish, code, folder, found)
    except FileExistsError as error:
        raise fault.ClientError(
            f"--name {name}: {folder} is there from an earlier run; choose another name, or remove "
            "the folder"
        ) from error
    except OSError as error:
        raise fault.ClientError(
            f"{error.filename or folder}: {error.strerror}; --local keeps all that it makes in "
            f"{FOLDER} of the current folder: change to one where you may write"
        ) from error
    command = [sys.executable, str(folder / workspace.LAUNCHER), "--", *wish.command]
    show = processes.to_terminal(max(len(task.name) for task in found))
    terminal.say(f"{name}: {count} {'tasks' if count > 1 else 'task'} on this machine, in {folder}")
    try:
        with asked.noted() as signals:
            ended = processes.run(found, command, cwd=here, show=show, asked=signals)
    except OSError as error:
        raise _too_many(count, error) from error
    if signals.number:
        terminal.say(f"{name}: interrupted, all tasks have ended")
        return _BY_SIGNAL + signals.number
    if processes.succeeded(ended):
        terminal.say(f"{name}: succeeded; results are in {_results(found)}")
        return 0
    first = ended[0]
    terminal.say(f"{name}: failed: {first.task.name} exit {first.code}: {_reason(first.task)}")
    return 1


def _too_many(count: int, error: OSError) -> fault.ClientError:
    return fault.ClientError(
        f"{count} tasks cannot be started on this machine: {error.strerror or error}; ask for "
        "fewer, as with --workers 2, or raise the limits of your shell (ulimit -n, ulimit -u)"
    )


def _lay_out(wish: Wish, code: Code, folder: Path, found: list[tasks.Task]) -> None:
    folder.mkdir(parents=True)
    ignored = folder.parent / ".gitignore"
    if not ignored.exists():
        ignored.write_text("*\n", encoding="utf-8")
    (folder / workspace.LAUNCHER).write_bytes(code.launcher)
    if code.archive is not None:
        (folder / workspace.ARCHIVE).write_bytes(code.archive)
    for task in found:
        task.reason.parent.mkdir(parents=True)
        for link, target in tasks.links(wish, task).items():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)


def _ports(count: int) -> Iterator[int]:
    """Give ports that nobody listens on now; all are held until all are known."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        yield from [item.getsockname()[1] for item in sockets]


def _results(found: list[tasks.Task]) -> Path:
    """Give the output of the task that saves: the chief, or worker 0."""
    by_name = {task.name: task for task in found}
    saving = by_name.get("chief-0") or by_name.get("worker-0") or found[0]
    return saving.workspace / "output"


def _reason(task: tasks.Task) -> str:
    try:
        return task.reason.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "no reason given"
