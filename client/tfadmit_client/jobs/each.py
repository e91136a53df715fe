"""A change of several jobs, one after the other: one that is refused does not keep the others."""

import argparse
from collections.abc import Callable, Iterable, Sequence

from tfadmit_client import fault
from tfadmit_client.console import plain, terminal
from tfadmit_client.jobs import change as jobs_change
from tfadmit_client.jobs import option

Change = Callable[[jobs_change.Cluster, jobs_change.Target], str]
Connect = Callable[..., jobs_change.Cluster]


def run(arguments: argparse.Namespace, change: Change, *, connect: Connect) -> int:
    """Change each job, print what has happened, give the worst exit code.

    Raises:
        ClusterError: nobody answers.
        ClientError: the kubeconfig cannot be used.
    """
    cluster, namespace = option.connected(arguments, connect)
    with option.answering():
        codes = [_one(cluster, target, change) for target in _targets(namespace, arguments.jobs)]
    return max(codes)


def parser(prog: str, *, description: str, epilog: str) -> argparse.ArgumentParser:
    """Declare what the commands share."""
    made = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "jobs", metavar="JOB", nargs="+", type=option.job_name, help="names of TrainJobs"
    )
    option.add(made)
    return made


def _one(cluster: jobs_change.Cluster, target: jobs_change.Target, change: Change) -> int:
    try:
        print(plain.text(change(cluster, target)), flush=True)
    except fault.ClientError as error:
        terminal.say(error)
        return error.code
    return 0


def _targets(namespace: str, names: Sequence[str]) -> Iterable[jobs_change.Target]:
    """Give each job once, in the order of the words."""
    for name in dict.fromkeys(names):
        yield jobs_change.Target(namespace=namespace, name=name)
