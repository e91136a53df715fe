"""The options that commands about jobs share: which cluster, which namespace, which form."""

import argparse
import contextlib
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.jobs import read

EXIT_CODES = "Exit codes: 0 done; 2 refused, or the usage is wrong; 3 the cluster does not answer."
# RFC 1123, as the API server checks it; lengths are its business.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_C = TypeVar("_C", bound=read.Cluster)


def add(parser: argparse.ArgumentParser, *, everywhere: bool = False) -> None:
    """Declare the options; `everywhere` adds -A."""
    where = parser.add_mutually_exclusive_group() if everywhere else parser
    if everywhere:
        where.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    where.add_argument(
        "-n",
        "--namespace",
        metavar="NS",
        type=namespace,
        help="default: that of the context",
    )
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config, then the pod's")
    add("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare -o."""
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="default: table"
    )


def connected(arguments: argparse.Namespace, connect: Callable[..., _C]) -> tuple[_C, str]:
    """Connect; give the cluster and the namespace.

    Raises:
        ClientError: the kubeconfig cannot be used.
    """
    cluster = connect(kubeconfig=arguments.kubeconfig, context=arguments.context)
    return cluster, arguments.namespace or cluster.default_namespace


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Turn what a cluster does not answer, or refuses, into a sentence and its exit code.

    Raises:
        ClusterError: nobody answers.
        ClientError: something that is needed cannot be read.
    """
    try:
        yield
    except listing.UnreachableError as error:
        raise fault.ClusterError(str(error)) from error
    except listing.ReadError as error:
        raise fault.ClientError(str(error)) from error


def check_namespace(cluster: read.Cluster, namespace: str) -> None:
    """Tell a namespace that is not there from one without jobs.

    Raises:
        ClientError: it is not there.
    """
    try:
        found = cluster.get(kinds.NAMESPACE, namespace="", name=namespace)
    except listing.UnreachableError:
        raise
    except listing.ReadError:
        return  # most users may not read namespaces
    if found is None:
        raise fault.ClientError(
            f"there is no namespace {namespace}: -n NS names another; "
            f"`kubectl get namespaces{cluster.flags}` lists them, if you may"
        )


def job_name(word: str) -> str:
    """Take the name of a TrainJob, which becomes a part of an address of the API server."""
    if not _NAME.fullmatch(word):
        kind, slash, name = word.partition("/")
        plain = slash and kind.lower().startswith("trainjob") and _NAME.fullmatch(name)
        hint = f": leave out {kind}/" if plain else ""
        raise argparse.ArgumentTypeError(f"{word!r} is no name of a TrainJob{hint}")
    return word


def namespace(word: str) -> str:
    """Take the name of a namespace, which becomes a part of an address, too."""
    if not word:
        raise argparse.ArgumentTypeError("it is empty; leave it out for the context's")
    if not _NAME.fullmatch(word):
        raise argparse.ArgumentTypeError(f"{word!r} is no name of a namespace")
    return word
