"""The command line of `tfadmit-run`: text in, values out. Nothing is done here."""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tfadmit_trainer import __version__
from tfadmit_trainer.barrier import TIMEOUT_SECONDS

# So that a platform team can set it in a runtime, whatever command users write.
BARRIER_TIMEOUT_ENV: Final = "TFADMIT_BARRIER_TIMEOUT"

_ABOUT: Final = """\
Start a program as one task of a distributed TensorFlow training: find out which task this is, set
TF_CONFIG, wait until all other tasks can be found, then become the program. Signals and the exit
code are the program's own, because it runs in this very process."""

_CODES: Final = f"""\
exit codes, as long as the program has not been started:
  2    the environment is wrong, or wrong usage
  75   other tasks did not appear in time; another attempt may succeed
  126  the command cannot be executed
  127  the command is not there
  128+n  ended by signal n
--check ends with 0 when all is well, else with 1.

environment:
  {BARRIER_TIMEOUT_ENV}   default of --barrier-timeout
  TFADMIT_TERMINATION_LOG  where the reason of a failure goes (/dev/termination-log)"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is to be done."""

    command: tuple[str, ...] = ()
    barrier: bool = True
    barrier_timeout: float = TIMEOUT_SECONDS
    check: bool = False
    output: Literal["text", "json"] = "text"
    server: bool = False
    quiet: bool = False


def parse(argv: Sequence[str] | None, *, environ: Mapping[str, str]) -> Options:
    """Read the command line; ends the process with code 2 and a sentence when it is wrong."""
    parser = _parser()
    values = parser.parse_args(argv)
    command = tuple(values.command)
    if command[:1] == ("--",):
        command = command[1:]
    if values.output and not values.check:
        parser.error("-o belongs to --check")
    if values.check and (command or values.server):
        parser.error("--check only looks: leave out the command and --server")
    if not command and not (values.check or values.server):
        parser.error("no command: tfadmit-run -- python train.py")
    stated = environ.get(BARRIER_TIMEOUT_ENV) or str(TIMEOUT_SECONDS)
    timeout = values.barrier_timeout
    if timeout is None:
        try:
            timeout = _seconds(stated)
        except argparse.ArgumentTypeError as error:
            parser.error(f"{BARRIER_TIMEOUT_ENV}: {error}")
    return Options(
        command=command,
        barrier=not values.no_barrier,
        barrier_timeout=timeout,
        check=values.check,
        output="json" if values.output == "json" else "text",
        server=values.server,
        quiet=values.quiet,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfadmit-run",
        usage="tfadmit-run [options] -- command …",
        description=_ABOUT,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--barrier-timeout", type=_seconds, metavar="SECONDS", help="how long to wait for others")
    add("--no-barrier", action="store_true", help="do not wait for others")
    add("--check", action="store_true", help="print what this task sees, and a verdict")
    add("-o", dest="output", choices=["text", "json"], help="form of --check")
    add(
        "--server",
        action="store_true",
        help="with parameter servers: ps and workers serve until the chief has ended; the other "
        "roles run the command",
    )
    add("-q", dest="quiet", action="store_true", help="warnings and errors only")
    add("--version", action="version", version=f"tfadmit {__version__}")
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
