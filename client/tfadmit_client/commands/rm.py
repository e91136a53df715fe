"""The command `tfadmit rm`: delete jobs with all that belongs to them."""

import argparse
import functools
import sys
import time
from collections.abc import Callable, Sequence

from tfadmit_client.cluster import live_jobs
from tfadmit_client.console import terminal
from tfadmit_client.jobs import each, remove

_INTERRUPTED = 130
_EPILOG = """\
With the TrainJob go its JobSet, Jobs, pods, their logs and the code that `tfadmit run` brought.
Saved results stay where they are. A job that is not there is fine: the command can be repeated.

Exit codes: 0 all are gone; 1 one is not gone in time, and goes on; 2 refused, or the usage is
wrong; 3 the cluster does not answer; 130 interrupted: the deletion goes on.
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit rm",
    connect: each.Connect = live_jobs.connect,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    change = functools.partial(
        remove.remove,
        wait=0 if arguments.no_wait else arguments.timeout,
        tell=terminal.say,
        clock=clock,
        sleep=sleep,
    )
    try:
        return each.run(arguments, change, connect=connect)
    except KeyboardInterrupt:
        print("interrupted; what has begun to be deleted goes on", file=sys.stderr)
        return _INTERRUPTED


def _parser(prog: str) -> argparse.ArgumentParser:
    description = "Delete jobs with all that belongs to them, and wait until they are gone."
    parser = each.parser(prog, description=description, epilog=_EPILOG)
    parser.add_argument("--no-wait", action="store_true", help="do not wait until they are gone")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=remove.WAIT_SECONDS,
        help=f"how long to wait for each (default: {remove.WAIT_SECONDS:g})",
    )
    return parser


def _seconds(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{word!r} is no number of seconds above 0")
    return value
