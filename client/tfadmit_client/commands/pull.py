"""The command `tfadmit pull`: model, checkpoints and logs of a job, on this machine.

Here: argparse and printing. Where it is found is `pulling`, how it is brought `pull.bring`.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tfadmit_client.cluster import live_jobs
from tfadmit_client.console import terminal
from tfadmit_client.jobs import option, read
from tfadmit_client.pull import pulling

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
    connect: Callable[..., read.Cluster] = live_jobs.connect,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_intermixed_args(argv)
    wish = pulling.Wish(
        job=arguments.job,
        folder=Path(arguments.folder or arguments.job),
        partial=arguments.partial,
        base=arguments.base,
    )
    try:
        done = pulling.run(
            wish,
            connect=lambda: option.connected(arguments, connect),
            environ=environ,
            say=terminal.tell,
            bar=terminal.bar(),
        )
    except KeyboardInterrupt:
        terminal.tell("interrupted: what has arrived stays, the same command goes on")
        return INTERRUPTED
    for line in done.lines:
        print(line)
    return 0 if done.complete else INCOMPLETE


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
    option.add(parser)
    return parser
