"""The sidecar: saves while the program runs, once more when it has ended, and says so.

It ends when it is asked to (SIGTERM). Kubernetes asks a native sidecar when all other containers
have ended, however they ended: so also after the launcher was killed for lack of memory, when there
is no `ended.json`.
"""

import threading
from collections.abc import Callable
from pathlib import Path

from tfadmit_transfer import (
    fault,
    handover,
    local,
    logs,
    options,
    results,
    retry,
    rhythm,
)

# The launcher looks for the answer as often; a look costs one stat.
_LOOK_SECONDS = 0.2
# Time in which the launcher can still read the answer.
_MARGIN_SECONDS = 10.0
# Rights and buckets that are wrong now were right when the training began: worth a few tries.
_REFUSALS = 3


class Sync:
    """Saves the workspace of one task."""

    def __init__(
        self,
        told: options.Options,
        *,
        task_logs: logs.Logs,
        job: results.Results | None,
        patience: retry.Patience,
        stop: threading.Event,
    ) -> None:
        """`job` is None for tasks that save their logs only."""
        self._told = told
        self._logs = task_logs
        self._job = job
        self._patience = patience
        self._stop = stop
        self._periods = rhythm.periods()
        self._answered: local.Written | None = None
        self._well = False

    def run(self) -> None:
        """Save until asked to stop."""
        due = self._patience.clock()
        while not self._stop.is_set():
            # For the answer: a program that fills the volume must not keep it away.
            local.reserve(Path(self._told.place.saved))
            ended = self._ended()
            if ended is not None and ended != self._answered:
                self._last(handover.parse_ended(ended.content))
                self._answered = ended
            elif self._patience.clock() >= due:
                self._periodic(running=ended is None)
                due = self._patience.clock() + next(self._periods)
            self._stop.wait(_LOOK_SECONDS)
        self._end()

    def _ended(self) -> local.Written | None:
        return local.written(Path(self._told.place.ended))

    def _end(self) -> None:
        """Save what is there: the other containers have ended."""
        ended = self._ended()
        if ended is None or ended != self._answered or not self._well:
            self._last(handover.parse_ended(ended.content) if ended else None)
            return
        self._try("saving the end of the log", lambda: self._logs.save(all_of_it=True))

    def _periodic(self, *, running: bool) -> None:
        def save() -> None:
            self._logs.save(all_of_it=False)
            if self._job and running:
                self._job.begin()
                self._job.checkpoints(Path(self._told.place.checkpoints))

        self._try("saving", save)

    def _last(self, ended: handover.Ended | None) -> None:
        """Save everything, and tell the launcher what came of it."""
        how = f"with code {ended.code}" if ended else "without a word of its launcher"
        self._patience.say(f"the program ended {how}: saving its results")
        try:
            self._until_saved(ended)
        except fault.TransferError as error:
            self._answer(ok=False, message=str(error))
        else:
            self._answer(ok=True, message=f"saved under {self._told.output}")

    def _until_saved(self, ended: handover.Ended | None) -> None:
        limit = max(self._told.save_timeout - _MARGIN_SECONDS, 1.0)
        deadline = self._patience.clock() + limit
        refusals = 0
        for wait in rhythm.waits(longest=10.0):
            try:
                with local.told():
                    self._everything(ended)
            except fault.OvertakenError:  # noqa: PERF203 - that is what the loop is for
                raise
            except fault.TransferError as error:
                refusals += isinstance(error, fault.RefusedError)
                if refusals >= _REFUSALS or self._patience.clock() + wait > deadline:
                    raise
                self._patience.say(f"{error}; trying again in {wait:g} s")
                self._patience.sleep(wait)
            else:
                return

    def _everything(self, ended: handover.Ended | None) -> None:
        self._logs.save(all_of_it=True)
        if self._job:
            place = self._told.place
            self._job.checkpoints(Path(place.checkpoints))
            self._job.model(Path(place.model), code=ended.code if ended else None)

    def _answer(self, *, ok: bool, message: str) -> None:
        self._well = ok
        self._patience.say(message)
        content = handover.saved_json(attempt=self._told.job.attempt, ok=ok, message=message)
        trouble = ""
        for wait in rhythm.waits(longest=10.0):
            try:
                local.write(Path(self._told.place.saved), content)
            except OSError as error:  # noqa: PERF203 - that is what the loop is for
                # The launcher waits for it, so it is worth more tries; without it ends the same.
                said = f"the answer cannot be written ({error.strerror})"
                if said != trouble:
                    self._patience.say(said)
                trouble = said
                if self._stop.wait(wait):
                    return
            else:
                break

    def _try(self, what: str, action: Callable[[], None]) -> None:
        """Do what will be done again anyway; say when it begins to fail and when it works again."""
        try:
            with local.told():
                action()
        except fault.TransferError as error:
            self._patience.say(f"{what} failed, it goes on trying: {error}")
