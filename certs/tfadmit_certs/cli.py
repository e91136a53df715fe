"""The command `tfadmit certs`: finds a subcommand, runs it, turns what went wrong into a sentence.

Here: the list of subcommands, the clock, exit codes. Not here: what they do (`…_command`). I/O:
standard error.

Exit codes: 0; 1 something is wrong with the certificates of a cluster; 2 wrong usage and refusals;
3 the cluster does not answer.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from tfadmit_certs import (
    fault,
    inject_command,
    issue_command,
    rotate_command,
    run_command,
    status_command,
)

OK, REFUSED = 0, 2
_NEEDED = frozenset(("cryptography", "kubernetes", "prometheus_client", "yaml", "urllib3"))


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit certs",
    clock: Callable[[], datetime] = _utc_now,
    host: run_command.Host | None = None,
) -> int:
    """Run one command; the result is the exit code.

    `host` is what a long run needs from elsewhere; without it there is no `run`.
    """
    try:
        arguments = _parser(prog, runs=host is not None).parse_args(argv)
    except SystemExit as stop:  # argparse has printed the help (0) or the mistake (2)
        return stop.code if isinstance(stop.code, int) else REFUSED
    try:
        return _execute(arguments, clock=clock, host=host)
    except fault.CertsError as error:
        code, message = error.code, str(error)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        code, message = REFUSED, _not_installed(missing)
    print(f"{prog} {arguments.command}: error: {message}", file=sys.stderr)
    return code


def _parser(prog: str, *, runs: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description="Certificates for the tfadmit webhook, without openssl."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    status_command.add(commands)
    rotate_command.add(commands)
    inject_command.add(commands)
    issue_command.add(commands)
    if runs:
        run_command.add(commands)
    return parser


def _execute(
    arguments: argparse.Namespace,
    *,
    clock: Callable[[], datetime],
    host: run_command.Host | None,
) -> int:
    if arguments.command == "run" and host:
        return run_command.execute(arguments, host=host)
    if arguments.command == "rotate":
        return rotate_command.execute(arguments, clock=clock)
    now = clock()
    if arguments.command == "issue":
        return issue_command.execute(arguments, now=now)
    if arguments.command == "inject":
        return inject_command.execute(arguments, now=now)
    return status_command.execute(arguments, now=now)


def _not_installed(missing: str) -> str:
    return f"the library {missing!r} is not installed.\n  pip install 'tfadmit[certs]'"
