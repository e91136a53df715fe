"""The command `tfadmit check`: is this cluster ready, and if not, what helps.

Here: argparse, connecting and printing. What is looked at is `check.checking`, who is asked `live`.
"""

import argparse
import time
from collections.abc import Callable, Sequence

from tfadmit_client import fault
from tfadmit_client.check import checking
from tfadmit_client.check import line as check_line
from tfadmit_client.cluster import listing, live
from tfadmit_client.commands import settings_option
from tfadmit_client.console import plain

_EPILOG = """\
One line each: `ok`; `fail`, something that will not work; `warn`, what should be seen to or could
not be looked at; `note`. What helps stands after the semicolon.

Exit codes: 0 nothing will fail; 1 something will; 2 the usage, the kubeconfig or the settings are
wrong; 3 the cluster does not answer.
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit check",
    connect: Callable[..., check_line.Cluster] = live.connect,
    clock: Callable[[], float] = time.time,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    settings = settings_option.load(arguments.settings)
    failed = False
    try:
        cluster = connect(kubeconfig=arguments.kubeconfig, context=arguments.context)
        for line in checking.check(
            cluster, namespace=arguments.namespace, settings=settings, now=clock()
        ):
            print(f"{line.state:4}  {plain.text(line.text)}", flush=True)
            failed = failed or line.state == "fail"
    except listing.UnreachableError as error:
        raise fault.ClusterError(str(error)) from error
    except listing.ReadError as error:
        raise fault.ClusterError(f"this does not look like an API server: {error}") from error
    return 1 if failed else 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Tell whether a cluster is ready: kinds, webhooks, certificates, a probe pod "
        "(dry run), runtimes and what breaks rules. Writes nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "-n",
        "--namespace",
        metavar="NS",
        default="default",
        help="where the probe pod is tried (default: default)",
    )
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config, then the pod's")
    add("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")
    add("--settings", metavar="FILE", help="the webhook's settings (default: its defaults)")
    return parser
