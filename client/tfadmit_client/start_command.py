"""The command `tfadmit start`: let stopped jobs go on."""

from collections.abc import Sequence

from tfadmit_client import jobs_change, jobs_each, jobs_option
from tfadmit_client.cluster import live_jobs

_EPILOG = f"""\
All tasks start again together; programs go on from their last checkpoint, if they write any. The
time that `activeDeadlineSeconds` allows begins anew. A job in a queue of Kueue waits for its turn.
A job that is started already is left as it is; one that has ended cannot go on.

{jobs_option.EXIT_CODES}
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit start",
    connect: jobs_each.Connect = live_jobs.connect,
) -> int:
    """Run the command."""
    description = "Let jobs go on that `tfadmit stop` has stopped."
    parser = jobs_each.parser(prog, description=description, epilog=_EPILOG)
    return jobs_each.run(parser.parse_args(argv), jobs_change.start, connect=connect)
