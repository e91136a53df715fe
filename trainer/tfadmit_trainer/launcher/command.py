"""The order of the launcher's steps: code, inputs, program, farewell."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tfadmit_trainer import contract, fault, termination, voice, workspace
from tfadmit_trainer.launcher import archive, child, handover, reason, tee
from tfadmit_trainer.launcher.fault import LaunchError
from tfadmit_trainer.launcher.handover import Ended

# EX_IOERR of sysexits.h: the program went well and its results were not saved.
NOT_SAVED: Final = 74
_USAGE: Final = "usage: launcher.pyz -- command …"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a program; the result is the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = words[1:] if words[:1] == ["--"] else words
    if not command or command[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stderr)  # noqa: T201 - for who tries it by hand
        return fault.USAGE if not command else 0
    return _Launch(command, os.environ).run()


class _Launch:
    """One program."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = command
        self._environ = environ
        self._where = workspace.tree(environ)
        # Without a workspace there is nobody to hand anything over to.
        self._has_workspace = (
            workspace.ROOT_ENV in environ
            or workspace.CODE_SHA256_ENV in environ
            or Path(self._where.root).is_dir()
        )
        self._attempt = _attempt(environ)
        self._log = tee.Log(self._log_path())

    def run(self) -> int:
        try:
            save_seconds = handover.seconds(self._environ)
            cwd, env = self._prepare(), self._env()
        except LaunchError as error:
            return self._refuse(str(error))
        except OSError as error:
            return self._refuse(
                f"{error.filename}: {error.strerror}: is {self._where.root} a volume that the "
                "container's user may write to?"
            )
        outcome = child.execute(self._command, env=env, cwd=cwd, log=self._log)
        ended = outcome.ended
        if ended.code:
            self._leave(
                reason.of(
                    ended.code, number=ended.signal, errors=outcome.errors, output=outcome.output
                )
            )
        self._tell(ended)
        return self._saved(ended, timeout=save_seconds)

    def _refuse(self, sentence: str) -> int:
        self._log.say(sentence)
        self._leave(sentence)
        self._tell(Ended(code=fault.USAGE))
        return fault.USAGE

    def _prepare(self) -> str | None:
        """Bring code and folders into place; give the working directory, if it is another one."""
        if self._has_workspace:
            handover.forget(self._where)
        sha256 = self._environ.get(workspace.CODE_SHA256_ENV)
        if sha256:
            archive.unpack(self._archive(sha256), sha256=sha256, into=Path(self._where.code))
        handover.demand_inputs(self._where, workspace.inputs(self._environ))
        return self._where.code if sha256 else None

    def _archive(self, sha256: str) -> Path:
        """Give where the code is: in the ConfigMap, or fetched because it is larger."""
        fetched = Path(self._where.archive(sha256))
        mount = self._environ.get(workspace.CODE_MOUNT_ENV) or workspace.CODE_MOUNT
        return fetched if fetched.exists() else Path(mount) / workspace.ARCHIVE

    def _env(self) -> dict[str, str]:
        env = dict(self._environ)
        if not self._has_workspace:
            return env
        names = workspace.inputs(self._environ)
        added = workspace.environment(self._where, names=names, environ=env)
        for name in ("TFADMIT_MODEL_DIR", "TFADMIT_CHECKPOINT_DIR", "TFADMIT_LOG_DIR"):
            if name in added:
                Path(added[name]).mkdir(parents=True, exist_ok=True)
        # So that the log shows a line when it is printed, and not when 8 KiB have come together.
        env.setdefault("PYTHONUNBUFFERED", "1")
        if library := _library():
            before = [env["PYTHONPATH"]] if env.get("PYTHONPATH") else []
            env["PYTHONPATH"] = os.pathsep.join([*before, library])
        return {**env, **added}

    def _saved(self, ended: Ended, *, timeout: float) -> int:
        if not self._environ.get(workspace.OUTPUT_URI_ENV):
            return ended.code
        # The kubelet's SIGTERM is no reason to leave before the save: SIGKILL follows in time.
        signal.signal(signal.SIGTERM, lambda _number, _frame: None)
        saved = handover.await_saved(self._where, attempt=self._attempt, timeout=timeout)
        if saved.ok:
            return ended.code
        sentence = f"the results were not saved: {saved.message}"
        self._log.say(sentence)
        if ended.code:
            return ended.code
        self._leave(sentence)
        return NOT_SAVED

    def _tell(self, ended: Ended) -> None:
        if not self._has_workspace:
            return
        try:
            handover.tell_ended(self._where, ended, attempt=self._attempt)
        except OSError as error:
            self._log.say(f"{self._where.ended} cannot be written ({error.strerror})")

    def _leave(self, sentence: str) -> None:
        """Leave a reason, unless the start of the program has left one of its own."""
        if termination.written(environ=self._environ):
            return
        if trouble := termination.write(sentence, environ=self._environ):
            voice.say(trouble)

    def _log_path(self) -> Path | None:
        if not self._has_workspace:
            return None
        role = self._environ.get(contract.TASK_TYPE_ENV) or "worker"
        index = (
            self._environ.get(contract.TASK_INDEX_ENV)
            or self._environ.get("JOB_COMPLETION_INDEX")
            or "0"
        )
        return Path(self._where.output, "logs", f"{role}-{index}.log")


def _attempt(environ: Mapping[str, str]) -> int:
    text = environ.get(contract.ATTEMPT_ENV, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _library() -> str:
    """Give the archive that this code runs from, so that programs can import it, too."""
    archive_path = Path(__file__).parents[2]
    return str(archive_path) if archive_path.is_file() else ""
