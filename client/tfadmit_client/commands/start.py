"""The command `tfadmit start`: let stopped jobs go on."""

from collections.abc import Sequence

from tfadmit_client.cluster import live_jobs
from tfadmit_client.jobs import change, each, option

_EPILOG = f"""\
All tasks start again together; programs go on from their last checkpoint, if they write any. The
time that `activeDeadlineSeconds` allows begins anew. A job in a queue of Kueue waits for its turn.
A job that is started already is left as it is; one that has ended cannot go on.

{option.EXIT_CODES}
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit start",
    connect: each.Connect = live_jobs.connect,
) -> int:
    """Run the command."""
    description = "Let jobs go on that `tfadmit stop` has stopped."
    parser = each.parser(prog, description=description, epilog=_EPILOG)
    return each.run(parser.parse_args(argv), change.start, connect=connect)
