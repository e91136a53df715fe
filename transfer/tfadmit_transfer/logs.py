"""Saving a task's folder of logs: its own log, which grows, and what the program leaves there."""

from collections.abc import Callable
from pathlib import Path

from tfadmit_transfer import layout, local, manifest, rhythm, store


class Logs:
    """The logs of one task of one attempt."""

    def __init__(
        self,
        at: store.Store,
        *,
        root: Path,
        task: str,
        attempt: int,
        clock: Callable[[], float],
    ) -> None:
        self._at = at
        self._root = root
        self._task = task
        self._attempt = attempt
        self._clock = clock
        self._saved: dict[str, tuple[manifest.File, float]] = {}

    def save(self, *, all_of_it: bool) -> None:
        """Save what is new, large logs only now and then unless all of it is wanted.

        What is written meanwhile is saved by the next call.

        Raises:
            TransferError: not all was saved.
        """
        for file in local.scan(self._root):
            if self._due(file, all_of_it=all_of_it):
                key = layout.log(attempt=self._attempt, task=self._task, path=file.path)
                self._at.upload(key, local.Reading(self._root, file), size=file.size)
                self._saved[file.path] = (file, self._clock())

    def _due(self, file: manifest.File, *, all_of_it: bool) -> bool:
        if file.path not in self._saved:
            return True
        saved, time = self._saved[file.path]
        if saved == file:
            return False
        waited = self._clock() - time
        return all_of_it or rhythm.log_due(file.size, saved=saved.size, waited=waited)
