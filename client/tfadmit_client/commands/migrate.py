"""The command `tfadmit migrate`: TFJobs in files or in a cluster to runtimes and TrainJobs.

Here: argparse, reading and writing. What becomes of a TFJob is `migrate`, who is asked for those of
a cluster `live`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tfadmit_client import fault
from tfadmit_client.cluster import listing, live
from tfadmit_client.commands import settings_option
from tfadmit_client.console import plain
from tfadmit_client.files import manifest
from tfadmit_client.migrate import document, gang, migrating, summary, tfjob, translate

_WRITERS: dict[str, Callable[[Sequence[summary.Result]], str]] = {
    "yaml": document.as_yaml,
    "json": document.as_json,
}
_EPILOG = """\
A TFJob becomes a TrainingRuntime and a TrainJob of its name and namespace, and nothing else.
The report goes to standard error: what was translated exactly, nearly and not, and what to do.

examples:
  %(prog)s -f tfjob.yaml > trainjob.yaml
  %(prog)s -f jobs/ --report report.txt | kubectl apply --dry-run=server -f -
  %(prog)s --from-cluster -n team-a mnist --name mnist-v2 | kubectl apply -f -

Exit codes: 0 translated; 1 the webhook would refuse the output, or with --strict something was not
translated (the output is written all the same); 2 the input cannot be used, nothing is written; 3
the cluster does not answer.
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit migrate",
    connect: Callable[..., listing.Reader] = live.connect,
) -> int:
    """Run the command."""
    parser = _parser(prog)
    arguments = parser.parse_args(argv)
    _check_usage(parser, arguments)
    settings = settings_option.load(arguments.settings)
    found = _found(arguments, connect)
    options = translate.Options(
        scheduler=arguments.gang, gang_restart=arguments.gang_restart, name=arguments.name
    )
    results = migrating.results(found.sources, options=options, settings=settings)
    written = _WRITERS[arguments.output](results)
    _report(arguments.report, summary.text(results, skipped=found.skipped))
    if results or arguments.output == "json":
        sys.stdout.write(written)
    return _code(results, strict=arguments.strict)


def _found(
    arguments: argparse.Namespace, connect: Callable[..., listing.Reader]
) -> migrating.Found:
    if not arguments.from_cluster:
        manifests = manifest.read(arguments.filename, namespace=arguments.namespace or "default")
        return migrating.from_files(manifests, names=arguments.names)
    try:
        reader = connect(kubeconfig=arguments.kubeconfig, context=arguments.context)
        return migrating.from_cluster(reader, namespace=arguments.namespace, names=arguments.names)
    except listing.UnreachableError as error:
        raise fault.ClusterError(str(error)) from error
    except listing.ReadError as error:
        raise fault.ClientError(str(error)) from error


def _report(path: str | None, text: str) -> None:
    if path is None:
        sys.stderr.write(plain.text(text))
        return
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise fault.ClientError(f"{path}: cannot be written: {error.strerror}") from error


def _code(results: Sequence[summary.Result], *, strict: bool) -> int:
    refused = any(migrating.is_refused(result) for result in results)
    missing = strict and any(result.count("not") for result in results)
    return 1 if refused or missing else 0


def _check_usage(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.from_cluster == bool(arguments.filename):
        parser.error("say what to read: -f FILE, or --from-cluster")
    if arguments.name and not tfjob.is_name(arguments.name):
        parser.error(
            f"--name {arguments.name}: at most 63 small letters, digits and hyphens, the first "
            "one a letter"
        )
    if not arguments.from_cluster and (arguments.all_namespaces or arguments.kubeconfig):
        parser.error("-A and --kubeconfig go with --from-cluster")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Translate TFJobs (kubeflow.org/v1) for Kubeflow Trainer and tfadmit.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*", help="only the TFJobs of these names")
    add(
        "-f",
        "--filename",
        metavar="FILE",
        action="append",
        help="YAML or JSON: a file, a directory, or - for standard input; may be repeated",
    )
    add("--from-cluster", action="store_true", help="read the TFJobs of a cluster")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-A", "--all-namespaces", action="store_true", help="all namespaces (the default)"
    )
    where.add_argument(
        "-n",
        "--namespace",
        metavar="NS",
        help="TFJobs of this one only; with -f, the namespace of those that name none",
    )
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config, then the pod's")
    add("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")
    add("--name", metavar="NAME", help="name of the output, for a single TFJob")
    add(
        "--gang",
        choices=gang.CHOICES,
        help="gang scheduler (default: what the TFJob tells of it)",
    )
    add(
        "--gang-restart",
        action="store_true",
        help="start all tasks again together when one fails, instead of one by one as TFJob did",
    )
    settings_option.add(parser)
    add("--strict", action="store_true", help="exit 1 when something was not translated")
    add("--report", metavar="FILE", help="write the report there (default: standard error)")
    add("-o", "--output", choices=tuple(_WRITERS), default="yaml", help="default: yaml")
    return parser
