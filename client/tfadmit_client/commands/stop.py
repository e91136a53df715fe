"""The command `tfadmit stop`: suspend jobs; they can go on later."""

from collections.abc import Sequence

from tfadmit_client.cluster import live_jobs
from tfadmit_client.jobs import change, each, option

_EPILOG = f"""\
The pods end: programs are asked by SIGTERM and have the runtime's grace period for a last
checkpoint. What lies in the pods only is gone. A job in a queue of Kueue gives its place away.
A job that is stopped, has ended or is being deleted is left as it is.

{option.EXIT_CODES}
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit stop",
    connect: each.Connect = live_jobs.connect,
) -> int:
    """Run the command."""
    description = "Stop jobs; `tfadmit start` lets them go on."
    parser = each.parser(prog, description=description, epilog=_EPILOG)
    return each.run(parser.parse_args(argv), change.stop, connect=connect)
