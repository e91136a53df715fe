"""The command `tfadmit show`: everything about one job, with the reason for its state first."""

import argparse
import time
from collections.abc import Callable, Sequence

from tfadmit_client.cluster import live_jobs
from tfadmit_client.console import terminal
from tfadmit_client.jobs import find, option, output, read, show_output
from tfadmit_client.watch import detail, job

_EPILOG = f"""\
What it says of code, commit, data and results is what `tfadmit run` noted; a TrainJob that kubectl
or an SDK made has no such notes.

{option.EXIT_CODES}
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit show",
    connect: Callable[..., read.Cluster] = live_jobs.connect,
    clock: Callable[[], float] = time.time,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    cluster, namespace = option.connected(arguments, connect)
    with option.answering():
        reading = find.one(cluster, namespace=namespace, name=arguments.job)
    for text in reading.gaps:
        terminal.say(f"not all is known: {text}")
    (found,) = reading.jobs
    shown = detail.safe(found, job.safe(found))
    if arguments.output == "table":
        print(show_output.as_text(shown, now=clock()))
    else:
        print(output.dumped(show_output.as_data(shown), form=arguments.output))
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Show one job: its state and why, what it runs, its tasks, what happened.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOB", type=option.job_name, help="the name of a TrainJob")
    option.add(parser)
    option.add_output(parser)
    return parser
