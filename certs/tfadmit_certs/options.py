"""The options that commands share, most of them about a live cluster, and what they amount to.

Here: argparse. Not here: anything heavy at import, so that `--help` is quick. I/O: connecting.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tfadmit_certs import fault
from tfadmit_certs.names import Names
from tfadmit_connect import place

if TYPE_CHECKING:
    from tfadmit_certs import kube

_DEFAULTS = Names()


class OptionsError(fault.CertsError):
    """Options that do not go together or name nothing."""


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare the form of what is printed."""
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="default: text"
    )


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declare how the API server is reached."""
    group = parser.add_argument_group("cluster")
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="default: $KUBECONFIG, ~/.kube/config, then the pod's service account",
    )
    where.add_argument("--in-cluster", action="store_true", help="by the pod's service account")
    group.add_argument(
        "--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)"
    )


def add_names(parser: argparse.ArgumentParser) -> None:
    """Declare what the objects are called."""
    group = parser.add_argument_group("objects")
    add = group.add_argument
    add(
        "-n",
        "--namespace",
        metavar="NS",
        default=_DEFAULTS.namespace,
        help="of Service, Secrets and Lease (default: %(default)s)",
    )
    add(
        "--service",
        metavar="NAME",
        default=_DEFAULTS.service,
        help="that webhooks call; the Secrets are NAME-ca and NAME-tls (default: %(default)s)",
    )
    add(
        "--configuration",
        metavar="NAME",
        default=_DEFAULTS.configuration,
        help="of both webhook configurations (default: %(default)s)",
    )
    add(
        "--url",
        metavar="URL",
        type=_url,
        help="webhooks that call this are ours too: a server outside of the cluster",
    )


def names(arguments: argparse.Namespace) -> Names:
    """What the objects are called by these arguments."""
    return Names(
        namespace=arguments.namespace,
        service=arguments.service,
        configuration=arguments.configuration,
        url=arguments.url or "",
    )


def connect(arguments: argparse.Namespace) -> "kube.Api":
    """Connect as the arguments say.

    Raises:
        CertsError: they cannot be used.
    """
    from tfadmit_certs import kube  # noqa: PLC0415 - loads the Kubernetes client

    if arguments.in_cluster:
        if arguments.context:
            raise OptionsError("--context names one in a kubeconfig: leave out --in-cluster")
        return kube.in_cluster()
    said = str(arguments.kubeconfig) if arguments.kubeconfig else None
    return kube.connect(place.Place(kubeconfig=said, context=arguments.context))


def _url(text: str) -> str:
    if not text.startswith("https://") or not text.removeprefix("https://").strip("/"):
        raise argparse.ArgumentTypeError(f"{text!r} is not the start of an https:// URL")
    return text
