"""The logs of a job as they are now, task by task."""

from collections.abc import Callable, Iterator

from tfadmit_client.cluster import listing
from tfadmit_client.logs import choose, source, stream
from tfadmit_client.logs.line import Line
from tfadmit_client.watch import seen


def lines(
    cluster: source.Cluster,
    job: seen.Seen,
    choice: choose.Choice,
    *,
    tail: int | None = None,
    failed: Callable[[str], None],
) -> Iterator[Line]:
    """Give the lines of all tasks, one after the other; a log that cannot be read is told of.

    Raises:
        ClientError: no log may be read.
        UnreachableError: nobody answers.
    """
    for run in choose.runs(job, choice):
        yield from _one(cluster, run, stream.Options(tail=tail), failed)


def _one(
    cluster: source.Cluster, run: source.Run, options: stream.Options, failed: Callable[[str], None]
) -> Iterator[Line]:
    try:
        yield from stream.lines(cluster, run, options)
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        failed(f"the log of {run.replica} cannot be read: {error}")
