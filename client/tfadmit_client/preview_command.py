"""The command `tfadmit preview`: arguments in, a table or data out, an exit code back.

Here: argparse, reading and printing. Not here: what a preview is (`preview`) or looks like
(`table`, `dump`).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tfadmit_client import dump, fault, manifest, preview, table
from tfadmit_client.report import Report
from tfadmit_webhook import policy
from tfadmit_webhook.settings import Settings

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
    report = preview.preview(manifests, settings=_settings(arguments.settings))
    if arguments.output == "table":
        print(table.render(report, everything=arguments.all))
    else:
        write = dump.as_json if arguments.output == "json" else dump.as_yaml
        write(report, sys.stdout)
        _complain(report)
    return 1 if report.refused else 0


def _complain(report: Report) -> None:
    """Say on standard error what the data have no place for."""
    for item in report.runtimes:
        if not item.decision.allowed:
            print(f"{item.manifest.source}: {item.manifest.label} is refused", file=sys.stderr)
            print(item.decision.message, file=sys.stderr)
    for section in report.sections:
        for remark in section.remarks:
            print(f"{section.manifest.source}: {remark.text}", file=sys.stderr)


def _settings(path: str | None) -> Settings:
    """Read the settings file, as the server does."""
    if path is None:
        return Settings()
    from tfadmit_webhook import settings_file  # noqa: PLC0415 - loads pydantic

    try:
        found = settings_file.load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise fault.ClientError(f"{path}: the settings cannot be read: {reason}") from error
    if isinstance(found, Settings):
        if unknown := policy.unknown_ids(found):
            known = ", ".join(rule.id for rule in policy.rules())
            lines = [f"{path}: policies.{name}: no such rule: use {known}" for name in unknown]
            raise fault.ClientError("\n".join(lines))
        return found
    raise fault.ClientError("\n".join(f"{path}: {item}" for item in found))


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
    add(
        "-n",
        "--namespace",
        metavar="NS",
        default="default",
        help="namespace of objects that name none (default: default)",
    )
    add("--settings", metavar="FILE", help="the webhook's settings (default: its defaults)")
    add("-o", "--output", choices=("table", "yaml", "json"), default="table", help="default: table")
    add("--all", action="store_true", help="show every pod of big groups in the table")
    return parser
