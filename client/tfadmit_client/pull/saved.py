"""What jobs have saved in an object store, read from where a person sits.

Here: opening the store of a job's results, and its logs. Not here: bringing results to this
machine (`bring`). The credentials are those of the environment, by the names of the stores' own
tools.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from tfadmit_client import fault
from tfadmit_client.logs.line import Line
from tfadmit_transfer import credentials, layout, store, uri
from tfadmit_transfer import fault as transfer_fault


def opened(base: str, job: str, *, environ: Mapping[str, str]) -> store.Store:
    """Open the store of a job's results, below `<base>/<job>`.

    Raises:
        TransferError: the address or the options make no sense.
    """
    where = uri.below(uri.output(base), job)
    return store.open_store(where, environ=environ, mend=credentials.BY_HAND)


def logs(
    base: str,
    job: str,
    *,
    attempt: int | None,
    replicas: Sequence[str],
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Line]:
    """Give the saved lines, attempt by attempt and task by task.

    `attempt` None is all of them; `replicas` are roles (`ps`) and tasks (`worker-1`), none for all.

    Raises:
        ClientError: there are none, or they cannot be read, and why.
    """
    try:
        at = opened(base, job, environ=environ)
        chosen = _chosen(at, attempt=attempt, replicas=replicas)
        if not chosen:
            raise fault.ClientError(_nothing(at, attempt=attempt, replicas=replicas))
        for found in chosen:
            yield from _lines(at, *found)
    except transfer_fault.PassingError as error:
        raise fault.ClusterError(str(error)) from error
    except transfer_fault.TransferError as error:
        raise fault.ClientError(str(error)) from error


def _chosen(
    at: store.Store, *, attempt: int | None, replicas: Sequence[str]
) -> list[tuple[int, str, str]]:
    """Give attempt, task and key of each log, in order."""
    parsed = ((layout.parse_log(item.key), item.key) for item in at.listing(layout.LOGS))
    found = [(log[0], log[1], key) for log, key in parsed if log]
    kept = [
        item
        for item in found
        if attempt in (None, item[0])
        and (not replicas or {item[1], item[1].rpartition("-")[0]} & set(replicas))
    ]
    return sorted(kept, key=_order)


def _order(item: tuple[int, str, str]) -> tuple[int, str, int]:
    role, _, index = item[1].rpartition("-")
    return item[0], role, int(index)


def _lines(at: store.Store, attempt: int, task: str, key: str) -> Iterator[Line]:
    rest = b""
    for chunk in at.open(key, offset=0, version="").chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _line(line, attempt, task)
    if rest:
        yield _line(rest, attempt, task)


def _line(content: bytes, attempt: int, task: str) -> Line:
    return Line(replica=task, attempt=attempt, text=content.decode(errors="replace").rstrip("\r"))


def _nothing(at: store.Store, *, attempt: int | None, replicas: Sequence[str]) -> str:
    tasks = ", ".join(replicas) or "any task"
    of_attempt = "" if attempt is None else f" in attempt {attempt}"
    return f"{at.name(layout.LOGS)} has no log of {tasks}{of_attempt}"
