"""The two programs of a pod, `fetch` and `sync`: put together, and their exit codes.

Exit codes of `fetch`: 0; 2 a mistake that trying again does not mend; 75 (EX_TEMPFAIL) the store
could not be reached for too long. `sync` ends with 0 after SIGTERM, whatever came of it:
`saved.json` tells, and the exit code of a sidecar counts for nothing.
"""

import argparse
import datetime as dt
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfadmit_trainer import termination
from tfadmit_transfer import fault, fetch, local, logs, options, results, retry, stores, sync

OK, REFUSED, PASSING = 0, 2, 75
# `__main__` holds them back until somebody waits for them.
_ENDING = (signal.SIGTERM, signal.SIGINT)


def main(
    argv: Sequence[str] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    patience: retry.Patience | None = None,
) -> int:
    """Run `fetch` or `sync`; the result is the exit code."""
    parser = argparse.ArgumentParser(
        prog="tfadmit-transfer",
        description="Bring a training pod its data, or save its results. The webhook of tfadmit "
        "puts both into pods that ask for them; what they do is told by the environment.",
    )
    parser.add_argument("program", choices=tuple(_PROGRAMS))
    program = parser.parse_args(argv).program
    try:
        told = options.read(environ)
        trying = patience or retry.Patience(say=_say)
        with local.told():
            _PROGRAMS[program](told, environ, trying)
    except fault.TransferError as error:
        passing = isinstance(error, fault.PassingError)
        _say(f"{program}: {error}")
        if trouble := termination.write(f"{program}: {error}", environ=environ):
            _say(trouble)
        return PASSING if passing else REFUSED
    return OK


def _fetch(told: options.Options, environ: Mapping[str, str], patience: retry.Patience) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    fetch.run(told, environ=environ, patience=patience)


def _sync(told: options.Options, environ: Mapping[str, str], patience: retry.Patience) -> None:
    stop = threading.Event()
    # Before any other thread begins, so that all hold the signals back.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    threading.Thread(target=_await_signal, args=(stop,), daemon=True).start()
    at = stores.of_job(told, environ)
    if at is None:
        _say("nothing is to be saved: there is no output")
        stop.wait()
        return
    task_logs = logs.Logs(
        at,
        root=Path(told.place.logs),
        task=told.task,
        attempt=told.job.attempt,
        clock=time.monotonic,
    )
    job = results.Results(at, job=told.job, now=_now, say=_say) if told.saves else None
    sync.Sync(told, task_logs=task_logs, job=job, patience=patience, stop=stop).run()


def _await_signal(stop: threading.Event) -> None:
    """Wait in a thread of its own.

    A handler would run in the main thread, also while that holds the lock of the very event.
    """
    signal.sigwait(_ENDING)
    stop.set()


_PROGRAMS = {"fetch": _fetch, "sync": _sync}


def _now() -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc)


def _say(line: str) -> None:
    print(f"{_now():%H:%M:%S} tfadmit: {line}", file=sys.stderr, flush=True)
