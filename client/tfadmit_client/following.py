"""Following a job to its end: what state it is in, and what that makes the exit code."""

import time
from collections.abc import Callable
from typing import Final

from tfadmit_client import listing
from tfadmit_client.submit import create
from tfadmit_client.submit.resource import TRAINJOB
from tfadmit_webhook import raw

SUCCEEDED: Final = 0
FAILED: Final = 1
INTERRUPTED: Final = 130
_POLL_SECONDS: Final = 2.0


def follow(
    cluster: create.Cluster,
    *,
    namespace: str,
    name: str,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Wait for the end of a job; give the exit code.

    Ctrl-C ends the waiting and not the job. So does nothing else: a cluster that does not answer
    for a while is asked again.
    """
    last = ""
    try:
        while True:
            state, code = _state(cluster, namespace=namespace, name=name)
            if state != last:
                say(f"{name}: {state}")
                last = state
            if code is not None:
                return code
            sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        say(f"{name} goes on: tfadmit logs -n {namespace} -f {name} follows it again")
        return INTERRUPTED


def _state(cluster: create.Cluster, *, namespace: str, name: str) -> tuple[str, int | None]:
    try:
        job = create.find(cluster, TRAINJOB, namespace=namespace, name=name)
    except listing.ReadError as error:
        return f"cannot be asked for now ({error})", None
    if job is None:
        return "deleted", FAILED
    for item in raw.sequence(raw.at(job, ("status", "conditions"))):
        condition = raw.mapping(item)
        if condition.get("status") != "True":
            continue
        kind = raw.text(condition.get("type"))
        said = raw.text(condition.get("message"))
        if kind == "Complete":
            return "succeeded", SUCCEEDED
        if kind == "Failed":
            return f"failed: {said}", FAILED
        if kind == "Suspended":
            return "suspended", None
    return "submitted", None
