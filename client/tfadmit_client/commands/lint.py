"""The command `tfadmit lint`: the webhook's rules over files, for editors and CI.

Here: argparse, reading and printing. What is judged is `lint.linting`, how it is written
`lint.output`.
"""

import argparse
from collections.abc import Sequence

from tfadmit_client.commands import namespace_option, settings_option
from tfadmit_client.files import manifest
from tfadmit_client.lint import linting, output

_EPILOG = """\
examples:
  %(prog)s runtimes/
  kubectl kustomize overlays/prod | %(prog)s -
  %(prog)s --settings settings.yaml -o sarif runtimes/ > tfadmit.sarif

Exit codes: 0 nothing would be refused, 1 something would be, 2 the input cannot be used.
"""


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit lint") -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    settings = settings_option.load(arguments.settings)
    manifests = manifest.read(arguments.filename, namespace=arguments.namespace)
    namespaces = namespace_option.known(arguments, manifests)
    result = linting.lint(manifests, settings=settings, namespaces=namespaces)
    print(output.WRITERS[arguments.output](result))
    return 1 if result.denied else 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Judge TensorFlow runtimes in files, and the TrainJobs whose runtime is among "
        "them, by the rules of the webhook. Asks no cluster. "
        "Objects without rules are skipped and counted.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "filename",
        metavar="FILE",
        nargs="+",
        help="YAML or JSON: files, directories, or - for standard input",
    )
    namespace_option.add(parser)
    settings_option.add(parser)
    add("-o", "--output", choices=tuple(output.WRITERS), default="text", help="default: text")
    return parser
