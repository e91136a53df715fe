"""`tfadmit certs status`: how the certificates of a cluster stand.

Here: argparse, looking and printing. What it comes to is `standing`. I/O: standard output, and the
API server by `secret`.
"""

import argparse
from datetime import datetime

from tfadmit_certs import options

_EPILOG = """\
Exit codes: 0 all is well; 1 something is wrong, with the line that helps; 2 the usage or the
kubeconfig is wrong; 3 the cluster does not answer. Reads two Secrets, a Lease and the webhook
configurations, writes nothing.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    command = commands.add_parser(
        "status",
        help="tell how the certificates of a cluster stand, and what to do if not well",
        description="Tell how self-managed certificates stand: CA, leaf, rotation, trust of each "
        "webhook.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_output(command)
    options.add_names(command)
    options.add_connection(command)


def execute(arguments: argparse.Namespace, *, now: datetime) -> int:
    """Run the command; the result is the exit code."""
    # Here and not above, because they load the libraries and `--help` must not wait for them.
    from tfadmit_certs import lease, secret, standing  # noqa: PLC0415

    api, names = options.connect(arguments), options.names(arguments)
    held = lease.LeaseObject(api, namespace=names.namespace, name=names.lease)
    found = standing.judged(
        secret.Store(api, names=names).look(), names=names, lease=held.read(), now=now
    )
    render = standing.as_json if arguments.output == "json" else standing.as_text
    print(render(found))
    return 1 if found.problems else 0
