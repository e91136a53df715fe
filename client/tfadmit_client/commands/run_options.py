"""The command line of `tfadmit run`: words in, options out. Files that it names are read here."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfadmit_client import fault
from tfadmit_client.files import yamltext
from tfadmit_client.jobs import option as jobs_option
from tfadmit_client.submit import options

_ABOUT: Final = """\
Run a program of this folder in the cluster: pack it, submit it as a TrainJob, and follow it to its
end. Everything after -- is the program and its arguments, as they are; no shell reads them."""

_EPILOG: Final = """\
examples:
  %(prog)s -- python train.py
  %(prog)s --workers 4 --gpu 1 --data train=s3://bucket/train -- python train.py --epochs 3
  %(prog)s --ps 2 --evaluator -- python train.py
  %(prog)s --local --workers 2 -- python train.py
  %(prog)s --dry-run -o yaml -- python train.py | kubectl apply -f -

What is not said comes from the runtime. Files of the folder that .gitignore or .tfadmitignore name
stay at home.

Exit codes: 0 the job succeeded; 1 it failed; 2 refused, nothing was created; 3 the cluster does not
answer; 130 interrupted, 141 the output cannot be written: the job goes on.
"""

_SPELLED: Final = {
    "detach": "-d",
    "earlier": "--from",
    "dry_run": "--dry-run",
    "output_format": "-o",
}


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the command line says."""

    said: options.Options
    earlier: str | None
    """The job to repeat."""

    namespace: str | None
    kubeconfig: str | None
    context: str | None
    detach: bool
    local: bool
    dry_run: bool
    output: str | None
    by_flags: frozenset[str]
    """Which options the flags said, as opposed to a file."""


def parse(argv: Sequence[str], *, prog: str) -> Words:
    """Read the command line; ends the process with code 2 and a sentence when it is wrong.

    Raises:
        ClientError: a file that it names cannot be used.
    """
    words, command = _split(argv)
    parser = _parser(prog)
    arguments, rest = parser.parse_known_args(words)
    if rest:
        _stray(parser, rest[0], prog=prog)
    if arguments.local:
        for name in ("detach", "earlier", "dry_run", "output_format"):
            if getattr(arguments, name):
                parser.error(f"{_SPELLED[name]} means nothing with --local: leave one of them out")
    flags = _flags(arguments, command)
    below = _file(arguments.filename) if arguments.filename else options.Options()
    return Words(
        said=options.merged(over=flags, under=below),
        earlier=arguments.earlier,
        namespace=arguments.namespace,
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        detach=arguments.detach,
        local=arguments.local,
        dry_run=arguments.dry_run,
        output=arguments.output_format,
        by_flags=frozenset(options.to_mapping(flags)),
    )


def _split(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    words = list(argv)
    if "--" not in words:
        return words, ()
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def _stray(parser: argparse.ArgumentParser, word: str, *, prog: str) -> None:
    if word.startswith("-"):
        parser.error(
            f"there is no option {word}; --help shows those that there are, and --patch FILE is "
            "for what none of them says"
        )
    parser.error(f"{word!r}: write two hyphens before the program, as in {prog} -- {word} …")


def _flags(arguments: argparse.Namespace, command: tuple[str, ...]) -> options.Options:
    return options.Options(
        command=command,
        name=arguments.name,
        workers=arguments.workers,
        ps=arguments.ps,
        chief=True if arguments.chief else None,
        evaluator=True if arguments.evaluator else None,
        cpu=arguments.cpu,
        memory=arguments.memory,
        gpu=arguments.gpu,
        image=arguments.image,
        code=arguments.code,
        data=tuple(arguments.data or ()),
        output=arguments.output,
        env=tuple(arguments.env or ()),
        deadline=arguments.deadline,
        runtime=arguments.runtime,
        patch=_mapping(arguments.patch, option="--patch") if arguments.patch else None,
        queue=arguments.queue,
        gpu_type=arguments.gpu_type,
        placement=arguments.placement,
    )


def _file(name: str) -> options.Options:
    """Read a file of options: as a command line they are text, so `1e-5` stays `1e-5`."""
    found = _mapping(name, option="-f", numbers=False)
    if "patch" in found:  # of Kubernetes, where a number is one
        found["patch"] = _mapping(name, option="-f")["patch"]
    return options.from_mapping(found, source=f"-f {name}")


def _mapping(name: str, *, option: str, numbers: bool = True) -> dict[str, Any]:
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
        found = [document.content for document in yamltext.documents(text, numbers=numbers)]
    except OSError as error:
        raise fault.ClientError(f"{option} {name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise fault.ClientError(f"{option} {name}: is not UTF-8 text") from error
    except yamltext.TextError as error:
        raise fault.ClientError(f"{option} {name}:{error.line}: {error}") from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise fault.ClientError(
            f"{option} {name}: must be one YAML mapping, as in `workers: 4`"
            if option == "-f"
            else f"{option} {name}: must be one YAML mapping of fields of a pod's spec, as in "
            "`nodeSelector: {{disk: ssd}}`".replace("{{", "{").replace("}}", "}")
        )
    return found[0]


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} [options] -- command …",
        description=_ABOUT,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _training(parser.add_argument_group("the training"))
    _things(parser.add_argument_group("code, data, results"))
    _placement(parser.add_argument_group("where"))
    _how(parser.add_argument_group("how"))
    return parser


def _training(group: Any) -> None:  # noqa: ANN401 - argparse's own type is private
    add = group.add_argument
    add("--name", metavar="NAME", help="of the job (default: made of the folder's)")
    add("--workers", metavar="N", help="number of workers; 1 is a single training")
    add("--ps", metavar="N", help="number of parameter servers; brings a chief")
    add("--chief", action="store_true", help="with a chief")
    add("--evaluator", action="store_true", help="with an evaluator")
    add("--cpu", metavar="CORES", help="of each task, as 4 or 500m")
    add("--memory", metavar="AMOUNT", help="of each task, as 16Gi")
    add("--gpu", metavar="N", help="of each task (default: none), or RESOURCE=N")
    add("--image", metavar="IMAGE", help="needs python3, and what the program imports")
    add("--deadline", metavar="TIME", help="the job fails after that, as 90m or 1d12h")


def _things(group: Any) -> None:  # noqa: ANN401 - argparse's own type is private
    add = group.add_argument
    add("--code", metavar="DIR", help="folder of the program (default: this one; none: no code)")
    add("--data", metavar="[NAME=]URI", action="append", help="an input; may be repeated")
    add("--output", metavar="URI", help="results are saved below URI/JOB")
    add(
        "--env",
        metavar="K[=V]",
        action="append",
        help="a variable; K alone has its value here, K=secret:NAME/KEY that of a Secret",
    )


def _placement(group: Any) -> None:  # noqa: ANN401 - argparse's own type is private
    add = group.add_argument
    add("--runtime", metavar="NAME", help="TrainingRuntime or ClusterTrainingRuntime")
    add("--queue", metavar="NAME", help="of Kueue, or of Volcano where the runtime uses that")
    add("--gpu-type", metavar="TYPE", help="as the nodes' label has it, or LABEL=TYPE")
    spread = group.add_mutually_exclusive_group()
    for name, text in (("spread", "tasks on different nodes"), ("pack", "tasks on one node")):
        spread.add_argument(
            f"--{name}", dest="placement", action="store_const", const=name,
            help=f"{text}, where possible",
        )  # fmt: skip
    add("--patch", metavar="FILE", help="fields of the pods' spec, for the rest")
    add(
        "-n",
        "--namespace",
        metavar="NS",
        type=jobs_option.namespace,
        help="default: that of the context",
    )
    add("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")
    add("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, ~/.kube/config, then the pod's")


def _how(group: Any) -> None:  # noqa: ANN401 - argparse's own type is private
    add = group.add_argument
    add("-d", "--detach", action="store_true", help="do not follow: print the name and end")
    add("-f", dest="filename", metavar="FILE", help="options in YAML, by the same names")
    add(
        "--from",
        dest="earlier",
        metavar="JOB",
        type=jobs_option.job_name,
        help="repeat a job; options here change it",
    )
    add("--local", action="store_true", help="run all tasks on this machine")
    add("--dry-run", action="store_true", help="print what would be created, and create nothing")
    add("-o", dest="output_format", choices=("yaml", "json"), help="print the objects")
