"""The command `tfadmit preview`: arguments in, a table or data out, an exit code back.

Here: argparse, reading and printing. Not here: what a preview is (`preview.previewing`) or looks
like (`preview.table`, `preview.dump`).
"""

import argparse
import sys
from collections.abc import Sequence

from tfadmit_client.commands import namespace_option, settings_option
from tfadmit_client.console import plain, terminal
from tfadmit_client.files import manifest
from tfadmit_client.preview import dump, previewing, table
from tfadmit_client.preview.report import Report

_EPILOG = """\
examples:
  %(prog)s -f deploy/runtimes/tensorflow-distributed.yaml -f trainjob.yaml
  kubectl get clustertrainingruntime,trainjob -o yaml | %(prog)s -f -
  %(prog)s -f jobs/ -n team -o json

Exit codes: 0 all is admitted, 1 something would be refused, 2 the input cannot be used.
"""


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit preview") -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    manifests = manifest.read(arguments.filename, namespace=arguments.namespace)
    report = previewing.preview(
        manifests,
        settings=settings_option.load(arguments.settings),
        namespaces=namespace_option.known(arguments, manifests),
    )
    if arguments.output == "table":
        print(plain.text(table.render(report, everything=arguments.all)))
    else:
        write = dump.as_json if arguments.output == "json" else dump.as_yaml
        write(report, sys.stdout)
        _complain(report)
    return 1 if report.refused else 0


def _complain(report: Report) -> None:
    """Say on standard error what the data have no place for."""
    for item in report.runtimes:
        if not item.decision.allowed:
            terminal.say(f"{item.manifest.source}: {item.manifest.label} is refused")
            terminal.say(item.decision.message)
    for section in report.sections:
        for remark in section.remarks:
            terminal.say(f"{section.manifest.source}: {remark.text}")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Show each pod of TrainJobs, JobSets and Jobs as tfadmit would admit it. "
        "Asks no cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "-f",
        "--filename",
        metavar="FILE",
        nargs="+",
        action="extend",
        required=True,
        help="YAML or JSON: files, directories, or - for standard input; repeatable",
    )
    namespace_option.add(parser)
    settings_option.add(parser)
    add("-o", "--output", choices=("table", "yaml", "json"), default="table", help="default: table")
    add("--all", action="store_true", help="show every pod of big groups in the table")
    return parser
