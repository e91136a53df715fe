"""The command `tfadmit`: finds a subcommand, runs it, turns what went wrong into a sentence.

Here: the table of commands, exit codes, and nothing that takes time to import: `tfadmit --help`
answers before a person notices. Each command is a function `main(argv, prog=…) -> int` in
`commands`.

Exit codes: 0; 1 something would be refused; 2 the input or the usage is wrong; 3 the cluster does
not answer; 130 Ctrl-C; 141 who reads the output has gone (as the shell reports it for other
programs).
"""

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

OK, REFUSED, INTERRUPTED, BROKEN_PIPE = 0, 2, 130, 141
# A full disk or quota, a terminal that is gone.
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A subcommand: one entry here is all that it takes."""

    name: str
    help: str
    module: str
    extra: str
    """The extra of the distribution that installs what it needs."""


COMMANDS = (
    Command(
        name="run",
        help="run a program of this folder in the cluster",
        module="tfadmit_client.commands.run",
        extra="client",
    ),
    Command(
        name="ps",
        help="list jobs with their state and the reason for it",
        module="tfadmit_client.commands.ps",
        extra="client",
    ),
    Command(
        name="show",
        help="show one job: why it waits or failed, what it runs, its tasks",
        module="tfadmit_client.commands.show",
        extra="client",
    ),
    Command(
        name="logs",
        help="print or follow the logs of all tasks of a job",
        module="tfadmit_client.commands.logs",
        extra="client",
    ),
    Command(
        name="pull",
        help="bring the model, checkpoints and logs of a job here",
        module="tfadmit_client.commands.pull",
        extra="client,s3",
    ),
    Command(
        name="stop",
        help="stop jobs; they can go on later",
        module="tfadmit_client.commands.stop",
        extra="client",
    ),
    Command(
        name="start",
        help="let stopped jobs go on",
        module="tfadmit_client.commands.start",
        extra="client",
    ),
    Command(
        name="rm",
        help="delete jobs with all that belongs to them",
        module="tfadmit_client.commands.rm",
        extra="client",
    ),
    Command(
        name="preview",
        help="show the pods of files as a cluster with tfadmit would make them",
        module="tfadmit_client.commands.preview",
        extra="client",
    ),
    Command(
        name="lint",
        help="judge runtimes in files by the webhook's rules",
        module="tfadmit_client.commands.lint",
        extra="client",
    ),
    Command(
        name="audit",
        help="judge the objects of a cluster by the webhook's rules",
        module="tfadmit_client.commands.audit",
        extra="client",
    ),
    Command(
        name="check",
        help="tell whether a cluster is ready, and what to do if not",
        module="tfadmit_client.commands.check",
        extra="client",
    ),
    Command(
        name="migrate",
        help="translate TFJobs into runtimes and TrainJobs",
        module="tfadmit_client.commands.migrate",
        extra="client",
    ),
    Command(
        name="explain",
        help="explain a rule, with examples",
        module="tfadmit_client.commands.explain",
        extra="client",
    ),
    Command(
        name="demo",
        help="start the server on loopback, send it example pods, explain what comes back",
        module="tfadmit_client.commands.demo",
        extra="client,certs,webhook",
    ),
    Command(
        name="serve",
        help="run the admission server",
        module="tfadmit_webhook.cli",
        extra="webhook",
    ),
    Command(
        name="certs",
        help="issue, run, rotate and inspect the certificates of the server",
        module="tfadmit_client.commands.certs",
        extra="client,certs",
    ),
)


# What only some uses of a command need: `logs` reads a store when the pods are gone.
_EXTRAS = {"obstore": "client,s3"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `tfadmit`; the result is the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _close_stdout()
        return _fail(f"tfadmit: error: {_trouble(error)}")
    return code


def _trouble(error: OSError) -> str:
    """Say what the system refused, where no command has said it better."""
    said = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {said}"
    if isinstance(error, FileNotFoundError):  # of all calls only that for the folder names none
        return "the current folder is there no more: change to one that is (cd)"
    return f"cannot write: {said}" if error.errno in _OF_WRITING else said


def _open_streams() -> None:
    """Take the place of streams that the caller has closed, and write UTF-8 as kubectl reads it.

    The locale of a container is often one of ASCII; names of files may have bytes of no encoding.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:  # `print` would take standard output in its place
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _dispatch(words: Sequence[str]) -> int:
    if not words:
        print(_help(), file=sys.stderr)
        return REFUSED
    first = words[0]
    if first in ("-h", "--help", "help"):
        print(_help())
        return OK
    if first in ("-V", "--version", "version"):
        from tfadmit_trainer import __version__  # noqa: PLC0415 - not needed otherwise

        print(f"tfadmit {__version__}")
        return OK
    command = next((item for item in COMMANDS if item.name == first), None)
    if command is None:
        return _fail(f"tfadmit: there is no command {first!r}{_near(first)}; see tfadmit --help")
    return _run(command, words[1:])


def _run(command: Command, argv: Sequence[str]) -> int:
    from tfadmit_client import fault  # noqa: PLC0415 - not needed for --help

    prog = f"tfadmit {command.name}"
    try:
        result: int = importlib.import_module(command.module).main(argv, prog=prog)
    except SystemExit as stop:  # argparse has printed the help (0) or the mistake (2)
        return stop.code if isinstance(stop.code, int) else REFUSED
    except fault.ClientError as error:
        return _fail(f"{prog}: error: {error}", code=error.code)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("tfadmit"):
            raise
        return _fail(
            f"{prog}: error: it needs {missing!r}, which is not installed:\n"
            f"  pip install 'tfadmit[{_EXTRAS.get(missing, command.extra)}]'"
        )
    return result


def _fail(message: str, *, code: int = REFUSED) -> int:
    from tfadmit_client.console import plain  # noqa: PLC0415 - not needed for --help

    print(plain.text(message), file=sys.stderr)
    return code


def _help() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:{width}}  {command.help}" for command in COMMANDS]
    return "\n".join(
        [
            "usage: tfadmit COMMAND [OPTION …]",
            "",
            "TensorFlow on Kubeflow Trainer: jobs for data scientists, tools for platform teams.",
            "",
            *lines,
            "",
            "tfadmit COMMAND --help explains a command; tfadmit --version tells the version.",
        ]
    )


def _near(word: str) -> str:
    import difflib  # noqa: PLC0415 - only for a mistake

    near = difflib.get_close_matches(word, [command.name for command in COMMANDS], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _close_stdout() -> None:
    """Keep the interpreter from complaining about the pipe once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
