"""`tfadmit certs run`: the process that owns the certificates.

Here: argparse. What it does is `service`; its settings and the form of its log come from whoever
composes the command (`Host`), because the settings file is the webhook's. I/O: none of its own.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfadmit_certs import options
from tfadmit_certs.lifetimes import Lifetimes

_DESCRIPTION = """\
Make, publish and rotate the webhook's certificates until SIGTERM. Any number of these may run: the
holder of the Lease tfadmit-certs writes, the others stand by. Logs are JSON lines on stderr.
"""
_EPILOG = """\
examples:
  %(prog)s --in-cluster --config settings.yaml
  %(prog)s --kubeconfig ~/.kube/config --metrics-port 0
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the settings file says about certificates."""

    lifetimes: Lifetimes
    cluster_domain: str


@dataclass(frozen=True, kw_only=True)
class Host:
    """What is put in from outside of this component."""

    load: Callable[[Path | None], Settings]
    """Reads the settings file; the defaults without one."""

    log: Callable[[], None]
    """Gives the log of the process its form."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    command = commands.add_parser(
        "run",
        help="make, publish and rotate the certificates of a cluster's webhook, as a service",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = command.add_argument
    option(
        "--config", metavar="FILE", type=Path, help="the webhook's settings (default: its defaults)"
    )
    option(
        "--metrics-port",
        metavar="PORT",
        type=_port,
        default=8080,
        help="plain HTTP port of /metrics, /healthz and /readyz, 0 for any free one "
        "(default: %(default)s)",
    )
    option("--identity", metavar="NAME", help="holder of the Lease (default: the host's name)")
    options.add_names(command)
    options.add_connection(command)


def execute(arguments: argparse.Namespace, *, host: Host) -> int:
    """Run the command; the result is the exit code."""
    settings = host.load(arguments.config)
    names = options.names(arguments)
    hostnames = names.hostnames(cluster_domain=settings.cluster_domain)
    # Here and not above, because it loads the libraries and `--help` must not wait for them.
    from tfadmit_certs import service  # noqa: PLC0415

    api = options.connect(arguments)
    host.log()
    service.run(
        api,
        options=service.Options(
            names=names,
            lifetimes=settings.lifetimes,
            hostnames=hostnames,
            identity=arguments.identity or "",
            port=arguments.metrics_port,
        ),
    )
    return 0


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:6]) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: use 0 to 65535")
