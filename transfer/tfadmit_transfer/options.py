"""What the webhook told this pod, from its environment to values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tfadmit_trainer import contract
from tfadmit_transfer import fault, inputs, layout, uri, workspace

_DEFAULT_SAVE_TIMEOUT = 600.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that both programs are told."""

    place: workspace.Workspace
    job: layout.Job
    task: str
    """Role and index, such as `worker-0`."""

    saves: bool
    """Whether this task saves model and checkpoints."""

    inputs: tuple[inputs.Input, ...]
    output: uri.Uri | None
    output_mount: Path | None
    """Where the volume of the output is, if it is one."""

    save_timeout: float
    """Seconds in which the last save must be done; the launcher waits as long."""


def read(environ: Mapping[str, str]) -> Options:
    """Read the environment.

    Raises:
        RefusedError: something in it cannot be understood.
    """
    output = environ.get(contract.OUTPUT_URI_ENV, "")
    mount = environ.get(contract.OUTPUT_MOUNT_ENV, "")
    return Options(
        place=workspace.Workspace(
            PurePosixPath(environ.get(contract.WORKSPACE_ENV) or contract.WORKSPACE)
        ),
        job=layout.Job(
            name=environ.get(contract.JOB_ENV, ""),
            run=environ.get(contract.RUN_ENV, ""),
            attempt=_number(environ, contract.ATTEMPT_ENV),
        ),
        task=f"{environ.get(contract.TASK_TYPE_ENV) or 'worker'}-"
        f"{_number(environ, contract.TASK_INDEX_ENV)}",
        saves=environ.get(contract.SAVES_ENV) == "true",
        inputs=inputs.parse(environ.get(contract.INPUTS_ENV, "")),
        output=uri.output(output) if output else None,
        output_mount=Path(mount) if mount else None,
        save_timeout=float(_number(environ, contract.SAVE_TIMEOUT_ENV) or _DEFAULT_SAVE_TIMEOUT),
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name) or "0"
    if not (text.isascii() and text.isdigit()):
        raise fault.RefusedError(f"{name} is {text!r}, which is no number from 0 on")
    return int(text)
