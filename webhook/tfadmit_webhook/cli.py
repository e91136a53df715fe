"""The command `tfadmit serve`: arguments in, a running server or all that is wrong with them out.

Here: argparse, messages, exit codes. What the arguments amount to is found in `plan`, what the
server does is in `serve`; both are heavy and imported late, so that `--help` is quick.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

OK, REFUSED = 0, 2
_EXTRA = frozenset(("aiohttp", "flask", "kubernetes", "prometheus_client", "pydantic", "yaml"))

_DESCRIPTION = """\
Serve the admission webhook over TLS until SIGTERM. Logs are JSON lines on standard error; the first
ones tell the addresses in use.
"""
_EPILOG = """\
examples:
  %(prog)s --tls-cert tls.crt --tls-key tls.key --in-cluster --config settings.yaml
  %(prog)s --tls-cert tls.crt --tls-key tls.key --host 127.0.0.1 --port 0 --objects jobset.yaml

An API server that cannot be reached is no reason to stop: /readyz says so until it answers.
"""


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit serve") -> int:
    """Run the server; the result is the exit code: 0 after SIGTERM, 2 for anything refused."""
    try:
        arguments = _parser(prog).parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help (0) or the mistake (2)
        return stop.code if isinstance(stop.code, int) else REFUSED
    try:
        return _serve(arguments, prog=prog)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        _complain(prog, [f"{missing} is not installed: pip install 'tfadmit[webhook]'"])
        return REFUSED


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--config", metavar="FILE", type=Path, help="settings (default: the built-in ones)")
    add("--host", default="0.0.0.0", help="address to listen on (default: %(default)s)")  # noqa: S104 - a pod's
    # 10250: the one port beside 443 that private GKE clusters open from the control plane to nodes.
    add("--port", type=_port, default=10250, help="0 for any free one (default: %(default)s)")
    add("--tls-cert", metavar="FILE", type=Path, required=True, help="certificate with its chain")
    add("--tls-key", metavar="FILE", type=Path, required=True, help="its private key")
    metrics = parser.add_mutually_exclusive_group()
    metrics.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=_port,
        default=8080,
        help="plain HTTP port of /metrics, 0 for any free one (default: %(default)s)",
    )
    metrics.add_argument("--no-metrics", action="store_true", help="serve no metrics")
    where = parser.add_argument_group("where JobSets and Jobs are looked up, exactly one of")
    _add_sources(where.add_mutually_exclusive_group(required=True))
    return parser


def _add_sources(group: argparse._MutuallyExclusiveGroup) -> None:
    group.add_argument("--in-cluster", action="store_true", help="by the pod's service account")
    group.add_argument("--kubeconfig", metavar="FILE", type=Path, help="by its current context")
    group.add_argument(
        "--objects",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="in manifests, without any cluster: to try things out",
    )


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:6]) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: use 0 to 65535")


def _serve(arguments: argparse.Namespace, *, prog: str) -> int:
    # Here and not above, because they load Flask, aiohttp and pydantic.
    from tfadmit_webhook import json_log, plan, serve  # noqa: PLC0415

    planned = plan.make(
        plan.Arguments(
            config=arguments.config,
            tls_cert=arguments.tls_cert,
            tls_key=arguments.tls_key,
            host=arguments.host,
            port=arguments.port,
            metrics_port=None if arguments.no_metrics else arguments.metrics_port,
            kubeconfig=arguments.kubeconfig,
            objects=tuple(arguments.objects or ()),
        )
    )
    if isinstance(planned, list):
        _complain(prog, planned)
        return REFUSED
    json_log.install()
    try:
        serve.run(planned)
    except serve.ListenError as error:
        _complain(prog, [str(error)])
        return REFUSED
    return OK


def _complain(prog: str, faults: Iterable[str]) -> None:
    sys.stderr.writelines(f"{prog}: error: {fault}\n" for fault in faults)
