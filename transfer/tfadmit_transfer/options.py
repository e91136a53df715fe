"""What the webhook told this pod, from its environment to values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfadmit_trainer import contract, workspace
from tfadmit_transfer import fault, inputs, layout, uri


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that both programs are told."""

    place: workspace.Tree
    job: layout.Job
    task: str
    """Role and index, such as `worker-0`."""

    saves: bool
    """Whether this task saves model and checkpoints."""

    inputs: tuple[inputs.Input, ...]
    output: uri.Uri | None
    """Below which the results of this job are: `<base>/<job>`."""

    output_mount: Path | None
    """Where the volume of the output is, if it is one."""

    save_timeout: float
    """Seconds in which the last save must be done; the launcher waits as long."""


def read(environ: Mapping[str, str]) -> Options:
    """Read the environment.

    Raises:
        RefusedError: something in it cannot be understood.
    """
    output = environ.get(workspace.OUTPUT_URI_ENV, "")
    mount = environ.get(workspace.OUTPUT_MOUNT_ENV, "")
    return Options(
        place=workspace.tree(environ),
        job=layout.Job(
            name=environ.get(workspace.JOB_ENV, ""),
            run=environ.get(workspace.RUN_ENV, ""),
            attempt=_number(environ, contract.ATTEMPT_ENV),
        ),
        task=f"{environ.get(contract.TASK_TYPE_ENV) or 'worker'}-"
        f"{_number(environ, contract.TASK_INDEX_ENV)}",
        saves=environ.get(workspace.SAVES_ENV) == "true",
        inputs=inputs.parse(environ.get(workspace.FETCH_ENV, "")),
        output=uri.output(output) if output else None,
        output_mount=Path(mount) if mount else None,
        save_timeout=_seconds(environ, workspace.SAVE_TIMEOUT_ENV),
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name) or "0"
    if not (text.isascii() and text.isdigit()):
        raise fault.RefusedError(f"{name} is {text!r}, which is no number from 0 on")
    return int(text)


def _seconds(environ: Mapping[str, str], name: str) -> float:
    text = environ.get(name) or str(workspace.SAVE_TIMEOUT_SECONDS)
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise fault.RefusedError(f"{name} is {text!r}, which is no number of seconds")
    return found
