"""The names of a job's objects, below `<base>/<job>/`. Pure.

status.json                              what is complete, with sizes and checksums; written last
output/model/…                           the model of a run that ended well
output/checkpoints/…                     what a restarted job goes on from
logs/attempt-<k>/<role>-<i>.log          what each task wrote
logs/attempt-<k>/<role>-<i>/…            what else it left in its folder of logs
partial/attempt-<k>/model/…              the model of a run that did not end well
.staging/…                               on the way to one of the above
"""

import re
from dataclasses import dataclass
from typing import Final

STATUS: Final = "status.json"
MODEL: Final = "output/model/"
CHECKPOINTS: Final = "output/checkpoints/"
LOGS: Final = "logs/"
PARTIAL: Final = "partial/"
STAGING: Final = ".staging/"
PROBE: Final = ".staging/probe"


@dataclass(frozen=True, kw_only=True)
class Job:
    """Whose objects these are."""

    name: str
    run: str
    """The uid of the JobSet or Job: another job of the same name has another."""

    attempt: int


_LOG = re.compile(r"logs/attempt-(\d+)/([a-z]+-\d+)\.log")


def partial(attempt: int) -> str:
    """The prefix of a model whose run did not end well."""
    return f"{PARTIAL}attempt-{attempt}/model/"


def staged(*, section: str, attempt: int, path: str) -> str:
    """The key of a file before it takes the place of another."""
    return f"{STAGING}attempt-{attempt}/{section}{path}"


def log(*, attempt: int, task: str, path: str) -> str:
    """The key of a file of the folder of logs; `task` is such as `worker-0`."""
    if path == f"{task}.log":
        return f"{LOGS}attempt-{attempt}/{path}"
    return f"{LOGS}attempt-{attempt}/{task}/{path}"


def parse_log(key: str) -> tuple[int, str] | None:
    """Read attempt and task from the key of a task's own log; None for other keys."""
    found = _LOG.fullmatch(key)
    return (int(found[1]), found[2]) if found else None
