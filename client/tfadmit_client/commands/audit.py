"""The command `tfadmit audit`: the webhook's rules over the objects of a live cluster.

Here: argparse, connecting and printing. What is judged is `audit.auditing`, how it is written
`audit.output`, who is asked `live`.
"""

import argparse
import time
from collections.abc import Callable, Sequence

from tfadmit_client import fault
from tfadmit_client.audit import auditing, output
from tfadmit_client.cluster import listing, live
from tfadmit_client.commands import settings_option

INCOMPLETE = 3

_EPILOG = """\
Judged: labelled TrainingRuntimes and ClusterTrainingRuntimes, TrainJobs on them, and of JobSets
with labelled pods the network section, roles, ports and names. Skipped and counted: other
frameworks, what has ended or is being deleted.

examples:
  %(prog)s
  %(prog)s -n team-a --settings settings.yaml -o json
  %(prog)s -o prometheus > /var/lib/node_exporter/tfadmit.prom.new

Exit codes: 0 nothing would be refused; 1 something would be; 2 the usage, the kubeconfig or the
settings are wrong; 3 the cluster does not answer, or something could not be read or judged and the
rest is in order.
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit audit",
    connect: Callable[..., auditing.Cluster] = live.connect,
    clock: Callable[[], float] = time.time,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    settings = settings_option.load(arguments.settings)
    try:
        cluster = connect(kubeconfig=arguments.kubeconfig, context=arguments.context)
        report = auditing.audit(cluster, namespace=arguments.namespace, settings=settings)
    except listing.UnreachableError as error:
        raise fault.ClusterError(str(error)) from error
    print(output.WRITERS[arguments.output](report, clock()))
    if report.denied:
        return 1
    return INCOMPLETE if report.failures else 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Judge what is in a cluster by the rules of the webhook; it need not be "
        "installed there. Reads (list), writes nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-A",
        "--all-namespaces",
        action="store_true",
        help="all namespaces and the runtimes of the cluster (the default)",
    )
    where.add_argument(
        "-n", "--namespace", metavar="NS", type=_namespace, help="the objects of this one only"
    )
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config, then the pod's")
    add("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")
    settings_option.add(parser)
    add("-o", "--output", choices=tuple(output.WRITERS), default="text", help="default: text")
    return parser


def _namespace(word: str) -> str:
    if not word:
        raise argparse.ArgumentTypeError("it is empty; leave it out for all namespaces")
    return word
