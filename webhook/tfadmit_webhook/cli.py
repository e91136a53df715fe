"""The command `tfadmit serve`: arguments in, a running server or all that is wrong with them out.

Here: argparse, messages, exit codes. What the arguments amount to is found in `plan`, what the
server does is in `serve`; both are heavy and imported late, so that `--help` is quick.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tfadmit_webhook import signals

OK, REFUSED = 0, 2
_EXTRA = frozenset(
    (
        *("aiohttp", "cryptography", "flask", "kubernetes"),
        *("orjson", "prometheus_client", "pydantic", "yaml"),
    )
)

_DESCRIPTION = """\
Serve the admission webhook over TLS until SIGTERM; it then goes on answering until nobody asks any
more. SIGINT (Ctrl-C) ends it after the reviews in work. Logs are JSON lines on standard error; the
first ones tell the addresses in use.
"""
_EPILOG = """\
examples:
  %(prog)s --tls-secret tfadmit-system/tfadmit-webhook-tls --in-cluster
  %(prog)s --tls-cert tls.crt --tls-key tls.key --in-cluster --config settings.yaml
  %(prog)s --tls-cert tls.crt --tls-key tls.key --host 127.0.0.1 --port 0 --objects jobset.yaml

An API server that cannot be reached, a Secret that does not exist yet and a certificate out of date
are no reasons to stop: /readyz says so until they are mended.
"""


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit serve") -> int:
    """Run the server; the result is the exit code.

    0 after SIGTERM, 1 when one of its processes ended unasked, 2 for anything refused.
    """
    try:
        arguments = _parser(prog).parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help (0) or the mistake (2)
        return stop.code if isinstance(stop.code, int) else REFUSED
    try:
        with signals.caught() as caught:
            return _serve(arguments, prog=prog, caught=caught)
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
    _add_certificates(parser)
    metrics = parser.add_mutually_exclusive_group()
    metrics.add_argument(
        "--metrics-port",
        metavar="PORT",
        type=_port,
        default=8080,
        help="plain HTTP port of /metrics, /healthz and /readyz, 0 for any free one "
        "(default: %(default)s)",
    )
    metrics.add_argument("--no-metrics", action="store_true", help="serve no plain HTTP")
    where = parser.add_argument_group("where JobSets and Jobs are looked up, exactly one of")
    _add_sources(where.add_mutually_exclusive_group(required=True))
    return parser


def _add_certificates(parser: argparse.ArgumentParser) -> None:
    own = parser.add_argument_group(
        "its certificate, by two files or by a Secret; watched for changes"
    )
    own.add_argument("--tls-cert", metavar="FILE", type=Path, help="certificate with its chain")
    own.add_argument("--tls-key", metavar="FILE", type=Path, help="its private key")
    own.add_argument(
        "--tls-secret",
        metavar="NAMESPACE/NAME",
        type=_secret,
        help="Secret of the type kubernetes.io/tls, in the cluster of the look-ups",
    )
    others = parser.add_argument_group("whom it trusts, and who trusts it")
    others.add_argument(
        "--webhook-configuration",
        metavar="NAME",
        help="be ready only when the caBundles of the webhook configurations of this name fit",
    )
    others.add_argument(
        "--client-ca",
        metavar="FILE",
        type=Path,
        help="take reviews only from clients with a certificate of these CAs; watched for changes",
    )
    others.add_argument(
        "--client-name",
        metavar="NAME",
        action="append",
        default=[],
        help="and with this common name; may be repeated",
    )


def _secret(text: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if namespace and name and "/" not in name:
        return namespace, name
    raise argparse.ArgumentTypeError(f"{text!r} is no Secret: use NAMESPACE/NAME")


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


def _serve(arguments: argparse.Namespace, *, prog: str, caught: signals.Signals) -> int:
    # Here and not above, because they load Flask, aiohttp and pydantic.
    from tfadmit_webhook import json_log, plan, port, serve  # noqa: PLC0415

    planned = plan.make(
        plan.Arguments(
            config=arguments.config,
            host=arguments.host,
            port=arguments.port,
            metrics_port=None if arguments.no_metrics else arguments.metrics_port,
            tls_cert=arguments.tls_cert,
            tls_key=arguments.tls_key,
            tls_secret=arguments.tls_secret,
            client_ca=arguments.client_ca,
            client_names=tuple(arguments.client_name),
            webhook_configuration=arguments.webhook_configuration,
            in_cluster=arguments.in_cluster,
            kubeconfig=arguments.kubeconfig,
            objects=tuple(arguments.objects or ()),
        )
    )
    if isinstance(planned, list):
        _complain(prog, planned)
        return REFUSED
    json_log.install()
    if caught.came:  # while everything was loaded
        return OK
    try:
        return serve.run(planned, caught)
    except port.ListenError as error:
        _complain(prog, [str(error)])
        return REFUSED


def _complain(prog: str, faults: Iterable[str]) -> None:
    sys.stderr.writelines(f"{prog}: error: {fault}\n" for fault in faults)
