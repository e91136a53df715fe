"""The command `tfadmit pull`: model, checkpoints and logs of a job, on this machine.

Here: argparse, finding the place, printing. What is brought and how is `pull`.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tfadmit_client import (
    fault,
    jobs_option,
    jobs_read,
    listing,
    live_jobs,
    pull,
    saved,
    saved_place,
)
from tfadmit_transfer import fault as transfer_fault
from tfadmit_transfer import results, retry, store

INCOMPLETE, INTERRUPTED = 1, 130
_EPILOG = """\
A model is whole or not brought: it is checked byte by byte and takes its place at the end. Called
again, the command goes on where it was and brings what is new.

examples:
  %(prog)s mnist                        into ./mnist
  %(prog)s mnist results                into ./results
  %(prog)s mnist --from s3://bucket/x   without asking a cluster

Credentials: those of your environment (AWS_ACCESS_KEY_ID and its like,
GOOGLE_APPLICATION_CREDENTIALS), else the job's Secret where you may read it.

Exit codes: 0 done; 1 there is no whole model of the last attempt; 2 refused, or the usage is wrong;
3 the cluster or the store does not answer; 130 interrupted: the same command goes on.
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit pull",
    connect: Callable[..., jobs_read.Cluster] = live_jobs.connect,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_intermixed_args(argv)
    place = saved_place.Place(bases=(arguments.base,), environ=environ)
    try:
        if not arguments.base:
            cluster, namespace = jobs_option.connected(arguments, connect)
            place = saved_place.find(
                cluster, namespace=namespace, name=arguments.job, environ=environ
            )
        return _pull(arguments, place)
    except (listing.UnreachableError, transfer_fault.PassingError) as error:
        raise fault.ClusterError(_noted(error, place)) from error
    except transfer_fault.TransferError as error:
        raise fault.ClientError(_noted(error, place)) from error
    except KeyboardInterrupt:
        _tell("interrupted: what has arrived stays, the same command goes on")
        return INTERRUPTED


def _pull(arguments: argparse.Namespace, place: saved_place.Place) -> int:
    folder = Path(arguments.folder or arguments.job)
    work = pull.Pull(
        at=_opened(arguments.job, place),
        job=arguments.job,
        folder=folder,
        patience=retry.Patience(say=_tell, limit=60.0),
        bar=_bar if sys.stderr.isatty() else None,
    )
    done = work.run(partial=arguments.partial)
    for line in done.lines:
        print(line)
    return 0 if done.complete else INCOMPLETE


def _opened(job: str, place: saved_place.Place) -> store.Store:
    """Open the first place that has something, the last one in any case."""
    *others, last = place.bases
    for base in others:
        at = saved.opened(base, job, environ=place.environ)
        if results.read(at) is not None:
            return at
    return saved.opened(last, job, environ=place.environ)


def _noted(error: Exception, place: saved_place.Place) -> str:
    return f"{error}; {place.note}" if place.note else str(error)


def _tell(line: str) -> None:
    print(f"{_CLEAR if sys.stderr.isatty() else ''}{line}", file=sys.stderr, flush=True)


def _bar(line: str) -> None:
    print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)


# To the beginning of the line, and clear it.
_CLEAR = "\r\x1b[K"


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Bring the results of a job here: its model, its checkpoints, its logs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("job", metavar="JOB", help="the name of a TrainJob, also of one that is deleted")
    add("folder", metavar="DIR", nargs="?", default="", help="where to (default: ./JOB)")
    add("--from", dest="base", metavar="URI", default="", help="where from: `run --output`")
    add("--partial", action="store_true", help="also a model that is not whole, as partial-model")
    jobs_option.add(parser)
    return parser
