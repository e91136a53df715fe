"""The command `tfadmit ps`: all jobs, what each is doing, and why."""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Sequence

from tfadmit_client.cluster import live_jobs
from tfadmit_client.console import terminal
from tfadmit_client.jobs import option, output, read
from tfadmit_client.watch import job

_EPILOG = f"""\
STATE is Pending, Running, Restarting(k), Suspended, Succeeded, Failed, Deleting, or Unknown for an
object that makes no sense. NODES are the tasks that run now, of all. ATTEMPT is how often all
tasks were started again. PROGRESS is what the program reports to Trainer (tfadmit_trainer has a
callback for Keras).

{option.EXIT_CODES}
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit ps",
    connect: Callable[..., read.Cluster] = live_jobs.connect,
    clock: Callable[[], float] = time.time,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    cluster, namespace = option.connected(arguments, connect)
    where = None if arguments.all_namespaces else namespace
    with option.answering():
        reading = read.everything(cluster, namespace=where)
        if not reading.jobs and where:
            option.check_namespace(cluster, where)
    _print(reading, arguments, where=where, now=clock())
    return 0


def _print(
    reading: read.Reading, arguments: argparse.Namespace, *, where: str | None, now: float
) -> None:
    for text in reading.gaps:
        terminal.say(f"not all is known: {text}")
    jobs = [job.safe(item) for item in reading.jobs]
    if arguments.output != "table":
        data = [output.as_data(item) for item in jobs]
        print(output.dumped(data, form=arguments.output))
    elif jobs:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(output.as_table(jobs, now=now, namespaces=where is None, width=width))
    else:
        place = f"in namespace {where}" if where else "in the cluster"
        print(f"there are no TrainJobs {place}", file=sys.stderr)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="List TrainJobs, whoever made them, with their state and the reason for it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option.add(parser, everywhere=True)
    option.add_output(parser)
    return parser
