"""Bringing the results of a job to this machine: whole or not at all, resumed where it broke off.

A model and checkpoints are brought beside their place and take it when each byte is there and
checked, so that a folder named `model` is never half of one. I/O: the store and a folder.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tfadmit_client import fault
from tfadmit_transfer import (
    download,
    layout,
    local,
    manifest,
    pieces,
    progress,
    results,
    retry,
    store,
)
from tfadmit_transfer import fault as transfer_fault
from tfadmit_transfer import status as status_file

MODEL, CHECKPOINTS, LOGS, PARTIAL = "model", "checkpoints", "logs", "partial-model"
_MARK = ".tfadmit-pull.json"
# How often the status is read anew when a job replaces what is being read.
_TRIES = 3

T = TypeVar("T")


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn what the file system of this machine refuses into a sentence.

    Raises:
        ClientError: what, and where.
    """
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise fault.ClientError(f"cannot write: {where}{error.strerror or error}") from error


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """What was brought, in sentences, and whether something is missing that should be there."""

    lines: Sequence[str] = field(default_factory=tuple)
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Pull:
    """One call."""

    at: store.Store
    job: str
    folder: Path
    patience: retry.Patience
    bar: Callable[[str], None] | None = None

    def run(self, *, partial: bool) -> Pulled:
        """Bring everything that is saved; with `partial` also a model that is not whole.

        Raises:
            ClientError: there is nothing, or the folder is somebody else's.
            TransferError: it cannot be read.
        """
        for left in reversed(range(_TRIES)):
            try:
                return self._once(partial=partial)
            except (transfer_fault.DamagedError, store.AbsentError):  # noqa: PERF203 - three at most
                # The job has replaced it meanwhile; what is there now is named by a new status.
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _once(self, *, partial: bool) -> Pulled:
        status = self._retried(lambda: results.read(self.at))
        logs = self._retried(lambda: self.at.listing(layout.LOGS))
        if status is None and not logs:
            raise fault.ClientError(f"{self.at.name('')}: nothing is saved there")
        self._claim()
        lines = [self._logs(logs)]
        if status and status.checkpoints:
            lines.append(self._section(CHECKPOINTS, status.checkpoints))
        model, complete = self._model(status, partial=partial)
        return Pulled(lines=[line for line in (*lines, model) if line], complete=complete)

    def _model(self, status: status_file.Status | None, *, partial: bool) -> tuple[str, bool]:
        if status is None:
            return "model: none, and no status: only tasks that save no model have saved yet", False
        if status.model is not None:
            older = _older(status)
            return f"{self._section(MODEL, status.model)}{older}", not older
        if status.partial is not None and partial:
            line = self._section(PARTIAL, status.partial)
            return f"{line}: NOT a whole model, {_how(status)}", True
        if status.partial is not None:
            number = progress.count(len(status.partial.entries), "file")
            return (
                f"model: not brought, there is no whole one: {_how(status)}; {number} of a model "
                f"({progress.size(status.partial.size)}) can be had with --partial"
            ), False
        return f"model: none was saved, {_how(status)}", status.code == 0

    def _section(self, name: str, saved: manifest.Manifest) -> str:
        target = self.folder / name
        told = f"{progress.count(len(saved.entries), 'file')}, {progress.size(saved.size)}"
        inside = {path: local.inside(path) for path in saved.entries}
        if _is_there(target, saved):
            return f"{name}: {told}, was there already"
        draft = self.folder / f".{name}.pulling"
        _sweep(draft, saved)
        wanted = [
            pieces.Piece(
                origin=self.at.origin(entry.key),
                target=draft / inside[entry.path],
                wanted=download.Wanted(size=entry.size, sha256=entry.sha256),
            )
            for entry in saved.entries.values()
        ]
        draft.mkdir(parents=True, exist_ok=True)
        pieces.bring(wanted, what=name, patience=self.patience, bar=self.bar)
        _swap(draft, target)
        return f"{name}: {told}, in {target}"

    def _logs(self, found: Sequence[store.Object]) -> str:
        fresh = []
        for item in found:
            target = self.folder / local.inside(item.key)
            if not _is_same(target, item):
                # Without a size: the log of a running task grows meanwhile.
                piece = pieces.Piece(
                    origin=self.at.origin(item.key), target=target, wanted=download.Wanted()
                )
                fresh.append((piece, item))
        if fresh:
            wanted = [piece for piece, _ in fresh]
            pieces.bring(wanted, what=LOGS, patience=self.patience, bar=self.bar)
        for piece, item in fresh:
            # As it was listed: what was written since is seen by the next call.
            os.utime(piece.target, (item.modified, item.modified))
        told = f"{progress.count(len(found), 'file')}, {len(fresh)} of them new or longer"
        return f"{LOGS}: {told}, in {self.folder / LOGS}" if found else ""

    def _claim(self) -> None:
        """Mark the folder as ours; refuse one that has such names from elsewhere."""
        mark = self.folder / _MARK
        here = self.at.name("")
        said = _marked(mark)
        if said.get("from") not in (None, here):
            raise fault.ClientError(
                f"{self.folder} has the results of {said['from']}: name another folder, "
                f"`tfadmit pull {self.job} FOLDER`"
            )
        if not said:
            for name in (MODEL, CHECKPOINTS, LOGS, PARTIAL):
                if (self.folder / name).exists():
                    raise fault.ClientError(
                        f"{self.folder / name} is there and was not brought by `tfadmit pull`: "
                        f"name another folder, `tfadmit pull {self.job} FOLDER`"
                    )
            local.write(mark, json.dumps({"job": self.job, "from": here}).encode())

    def _retried(self, action: Callable[[], T]) -> T:
        return retry.run(action, patience=self.patience)


def _marked(path: Path) -> dict[str, str]:
    """Read the mark of an earlier call; what is no JSON is none of ours."""
    try:
        found = json.loads(local.read(path) or b"{}")
    except ValueError:
        return {"from": f"something else ({path})"}
    return found if isinstance(found, dict) else {}


def _how(status: status_file.Status) -> str:
    if status.code is None:
        return f"attempt {status.attempt} has not ended well, or not yet"
    return f"attempt {status.attempt} ended with code {status.code}"


def _older(status: status_file.Status) -> str:
    """Say when the model is not of the job's last attempt."""
    model = status.model
    if model is None or (model.run, model.attempt) == (status.run, status.attempt):
        return ""
    which = f"attempt {model.attempt}" if model.run == status.run else "an earlier job of this name"
    return f"; it is of {which}, since then {_how(status)}"


def _is_same(target: Path, item: store.Object) -> bool:
    """Whether a log was brought as it is: that of another job may well be as long."""
    if not target.exists():
        return False
    found = target.stat()
    return found.st_size == item.size and int(found.st_mtime) == int(item.modified)


def _is_there(target: Path, saved: manifest.Manifest) -> bool:
    files = {file.path: file.size for file in local.scan(target)}
    if files != {entry.path: entry.size for entry in saved.entries.values()}:
        return False
    return all(
        local.sha256(target / entry.path) == entry.sha256 for entry in saved.entries.values()
    )


def _sweep(draft: Path, saved: manifest.Manifest) -> None:
    """Drop what an earlier, interrupted call has left of another state."""
    wanted = {draft / path for path in saved.entries}
    kept = wanted | {
        path.with_name(f".{path.name}.{ending}")
        for path in wanted
        for ending in ("part", "version")
    }
    for file in local.scan(draft):
        if draft / file.path not in kept:
            (draft / file.path).unlink()


def _swap(draft: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    if old.exists():
        shutil.rmtree(old)
    if target.exists():
        target.rename(old)
    draft.rename(target)
    if old.exists():
        shutil.rmtree(old)
