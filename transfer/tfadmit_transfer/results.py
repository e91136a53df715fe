"""The results of one job in a store: checkpoints and models replaced without ever being half.

`manifest` tells the protocol; here are its steps: upload, name, move, clean up. Only the one task
that saves uses this to write; `read` is for all.
"""

import concurrent.futures
import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tfadmit_transfer import fault, layout, local, manifest, progress, store
from tfadmit_transfer import status as status_file

# Files at a time; each is read, hashed and sent in a thread of its own. Small ones take nothing but
# the waiting for answers, large ones memory: see `store`.
_SMALL = 1024 * 1024
_SMALL_THREADS = 16
_LARGE_THREADS = 4
# How often a folder is looked at anew when the program writes while it is being saved.
_LOOKS = 3
T = TypeVar("T")
_Sized = TypeVar("_Sized", manifest.File, manifest.Entry)
_SECTIONS = (layout.MODEL, layout.PARTIAL, layout.CHECKPOINTS, layout.STAGING)


def read(at: store.Store) -> status_file.Status | None:
    """Read what is complete; None when nothing was ever saved."""
    content = at.read(layout.STATUS)
    return status_file.decode(content, where=at.name(layout.STATUS)) if content else None


class Results:
    """Writes the results of a job."""

    def __init__(
        self,
        at: store.Store,
        *,
        job: layout.Job,
        now: Callable[[], dt.datetime],
        say: Callable[[str], None],
    ) -> None:
        self._at = at
        self._job = job
        self._now = now
        self._say = say
        self._status: status_file.Status | None = None
        self._hashes: dict[tuple[Path, manifest.File], str] = {}

    def begin(self) -> status_file.Status:
        """Give the status to go on from.

        What an interrupted save has named is moved into place first: nothing else may be written
        over it.

        Raises:
            TransferError: the store cannot be used, or a later attempt writes here.
        """
        if self._status is not None:
            return self._settled(self._status)
        known = self._newest()
        found = known or status_file.Status(job=self._job.name)
        # Without a code: it runs again, perhaps after it was suspended.
        found = self._commit(
            replace(
                found,
                job=self._job.name,
                run=self._job.run,
                attempt=self._job.attempt,
                code=None,
            )
        )
        found = self._settled(found)
        self._status = found
        if known:
            self._clean(*_SECTIONS)
        return found

    def _settled(self, status: status_file.Status) -> status_file.Status:
        """Move what a status names beside its place."""
        for name, prefix in (("model", layout.MODEL), ("checkpoints", layout.CHECKPOINTS)):
            named: manifest.Manifest | None = getattr(status, name)
            if named and named.staged():
                section = {name: self._settle(named, prefix=prefix)}
                status = self._commit(replace(status, **section))  # type: ignore[arg-type]
        return status

    def checkpoints(self, root: Path) -> None:
        """Save what is new or changed of the checkpoints; a folder without files changes nothing.

        Raises:
            TransferError: not all was saved; what was complete before still is.
        """
        before = self.begin().checkpoints
        now = self._upload(root, before=before, prefix=layout.CHECKPOINTS, stage=False)
        if now is None or (before and before.entries == now.entries):
            return
        self._commit(replace(self.begin(), checkpoints=now))
        self.begin()
        self._clean(layout.CHECKPOINTS, layout.STAGING)
        self._say(f"saved checkpoints: {_told(now)}")

    def model(self, root: Path, *, code: int | None) -> None:
        """Save the model of a program that has ended, with this exit code if it told one.

        Only 0 makes it the job's model. Otherwise it is kept beside that one, as a part.

        Raises:
            TransferError: it was not saved; what was complete before still is.
        """
        if code == 0:
            self._whole(root)
        else:
            self._part(root, code=code)

    def _whole(self, root: Path) -> None:
        before = self.begin().model
        now = self._upload(root, before=before, prefix=layout.MODEL, stage=True, at_rest=True)
        if now is None:
            self._commit(replace(self.begin(), code=0))
            return
        self._commit(replace(self.begin(), code=0, model=now, partial=None))
        self.begin()
        self._clean(layout.MODEL, layout.PARTIAL, layout.STAGING)
        self._say(f"saved the model: {_told(now)}")

    def _part(self, root: Path, *, code: int | None) -> None:
        prefix = layout.partial(self._job.attempt)
        before = self.begin().partial
        if before and (before.run, before.attempt) != (self._job.run, self._job.attempt):
            before = None
        now = self._upload(root, before=before, prefix=prefix, stage=False)
        if now is not None:
            # Half of it may be older than the other half: it is no model, whatever is done.
            now = self._settle(now, prefix=prefix)
            self._say(f"saved what there is of a model, as a part: {_told(now)}")
        self._commit(replace(self.begin(), code=code, partial=now or before))

    def _commit(self, status: status_file.Status) -> status_file.Status:
        """Write the status: from here on its manifests are the truth."""
        self._newest()
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        status = replace(status, time=now)
        self._at.write(layout.STATUS, status_file.encode(status))
        self._status = status
        return status

    def _newest(self) -> status_file.Status | None:
        """Read the status, and stop where a later attempt of this run has written it."""
        found = read(self._at)
        if found and found.run == self._job.run and found.attempt > self._job.attempt:
            raise fault.OvertakenError(
                f"{self._at.name('')}: attempt {found.attempt} writes here now, this is attempt "
                f"{self._job.attempt}"
            )
        return found

    def _upload(
        self,
        root: Path,
        *,
        before: manifest.Manifest | None,
        prefix: str,
        stage: bool,
        at_rest: bool = False,
    ) -> manifest.Manifest | None:
        """Send what differs from before; None when there are no files.

        With `at_rest`, a file that changes meanwhile is a fault: its program has ended.
        """
        sending = _Sending(root=root, before=before, prefix=prefix, stage=stage)
        files = local.scan(root)
        for _ in range(_LOOKS):
            self._send(sending, files)
            again = local.scan(root)
            if calm := again == files:
                break
            files = again
        found = sending.of(files)
        missing = [file.path for file in files if file.path not in found]
        if at_rest and missing:
            raise fault.PassingError(f"{root / missing[0]}: it changed while it was saved")
        if before and found and not calm:
            # A file that kept its older state may name others that have gone since.
            found = {**before.entries, **found}
        if not found:
            return None
        return manifest.Manifest(run=self._job.run, attempt=self._job.attempt, entries=found)

    def _send(self, sending: "_Sending", files: list[manifest.File]) -> None:
        for entry in _each(lambda file: self._file(sending, file), files):
            if entry:
                sending.entries[entry.path] = entry

    def _file(self, sending: "_Sending", file: manifest.File) -> manifest.Entry | None:
        """Send a file unless the store has this content; None when it has gone or changed."""
        old = sending.old(file.path)
        if old and old.size == file.size and self._checksum(sending.root, file) == old.sha256:
            return old
        key = manifest.target(
            file.path,
            prefix=sending.prefix,
            attempt=self._job.attempt,
            before=sending.before,
            stage=sending.stage,
        )
        reading = local.Reading(sending.root, file)
        try:
            self._at.upload(key, reading, size=file.size)
        except fault.PassingError:
            if local.look(sending.root, file.path) is None:
                return None
            raise
        if not reading.settled:
            # What was complete before is untouched: changed content never goes to its place.
            return sending.before.entries.get(file.path) if sending.before else None
        self._hashes[sending.root, file] = reading.sha256
        return manifest.Entry(path=file.path, size=file.size, sha256=reading.sha256, key=key)

    def _checksum(self, root: Path, file: manifest.File) -> str:
        if (root, file) not in self._hashes:
            self._hashes[root, file] = local.sha256(root / file.path)
        return self._hashes[root, file]

    def _settle(self, now: manifest.Manifest, *, prefix: str) -> manifest.Manifest:
        """Copy staged files into place; they stay until a manifest without them is written."""

        def move(entry: manifest.Entry) -> None:
            self._at.copy(entry.key, prefix + entry.path, size=entry.size)

        for _ in _each(move, now.staged()):
            pass
        return now.settled(prefix)

    def _clean(self, *prefixes: str) -> None:
        """Delete what no manifest names any more."""
        if self._status is None:
            return
        sections = (self._status.model, self._status.partial, self._status.checkpoints)
        keys = [item.key for prefix in prefixes for item in self._at.listing(prefix)]
        self._at.remove(manifest.left_over(keys, sections=sections))


@dataclass(frozen=True, kw_only=True)
class _Sending:
    """A folder on its way."""

    root: Path
    before: manifest.Manifest | None
    prefix: str
    stage: bool
    entries: dict[str, manifest.Entry] = field(default_factory=dict)

    def of(self, files: Sequence[manifest.File]) -> dict[str, manifest.Entry]:
        """Give the entries of files, as far as they were sent."""
        return {file.path: self.entries[file.path] for file in files if file.path in self.entries}

    def old(self, path: str) -> manifest.Entry | None:
        """Give what the store has of a file: of this save, else of the last one."""
        before = self.before.entries if self.before else {}
        return self.entries.get(path) or before.get(path)


def _each(action: Callable[[_Sized], T], items: Sequence[_Sized]) -> Iterator[T]:
    """Do something with all files, several at a time; the first fault ends it."""
    small = [item for item in items if item.size <= _SMALL]
    large = [item for item in items if item.size > _SMALL]
    for group, threads in ((small, _SMALL_THREADS), (large, _LARGE_THREADS)):
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            yield from pool.map(action, group)


def _told(saved: manifest.Manifest) -> str:
    return f"{progress.count(len(saved.entries), 'file')}, {progress.size(saved.size)}"
