"""Why a job has failed, or a task of one that goes on: exit code, signal, and its last words.

Of several tasks that ended badly the first one counts, and before those that only noticed it: when
a worker is killed, its peers end a moment later because they lost it.
"""

from collections.abc import Mapping, Sequence

from tfadmit_client.watch import container, sentence, when
from tfadmit_client.watch.reason import Reason
from tfadmit_client.watch.seen import Seen
from tfadmit_client.watch.state import verdict
from tfadmit_client.watch.task import Task
from tfadmit_webhook import raw

# Those of `tfadmit_trainer.exits`, which needs signals that not every system of a user has, and 74
# (EX_IOERR) of the launcher.
MEANING: Mapping[int, str] = {
    1: "the program raised an exception",
    2: "the configuration is wrong or data is missing",
    14: "TensorFlow's start took too long, with all tasks there",
    74: "the results could not be saved",
    75: "other tasks did not come up in time",
    76: "another task ended or cannot be reached",
    77: "other tasks did not take part in a step that all must do",
    78: "the port of this task is in use",
    126: "the command is not executable",
    127: "the command was not found",
    143: "the pod was asked to end",
}
# Of tasks that lost their peers, or were asked to end.
_FOLLOWERS = frozenset({14, 75, 76, 77, 143})
_SIGNALS = {132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 137: "SIGKILL",
            139: "SIGSEGV", 143: "SIGTERM"}  # fmt: skip
# Words of the kubelet that say no more than the exit code does.
_PLAIN = frozenset({"Error", "Completed", "ContainerCannotRun", ""})


def why(seen: Seen, tasks: Sequence[Task]) -> Reason:
    """Explain a failed job."""
    condition = raw.mapping(verdict(seen))
    said = raw.text(condition.get("message"))
    if condition.get("reason") == "DeadlineExceeded":
        limit = raw.count(raw.at(seen.trainjob, ("spec", "activeDeadlineSeconds")), default=0)
        return Reason(code="deadline", text=f"its deadline of {when.length(limit)} was exceeded")
    if found := fault(tasks):
        return found
    for job in seen.jobs:
        if ended := _job_failed(job):
            return ended
    if condition.get("reason") == "TrainingRuntimeNotSupported":
        return Reason(code="runtime-missing", text=sentence.cut(said))
    return Reason(code="failed", text=sentence.cut(said or raw.text(condition.get("reason"))))


def fault(tasks: Sequence[Task]) -> Reason | None:
    """Explain by the task that ended badly first; None when none did."""
    found = [
        (*_order(ended), task.index, task.name, reason)
        for task in tasks
        for ended, reason in _ends(task)
    ]
    if not found:
        return None
    name, reason = min(found, key=lambda item: item[:4])[-2:]
    return Reason(code=reason.code, text=sentence.cut(f"{name} {reason.text}"))


def run(item: container.Container, ended: container.Ended) -> Reason:
    """Explain how one run of a container ended."""
    words = sentence.last_words(ended.message, from_log=item.log_policy == "FallbackToLogsOnError")
    text = f"exit {ended.code}"
    if ended.reason == "OOMKilled":
        limit = f" (limit {item.memory})" if item.memory else ""
        return Reason(code="oom", text=f"{text} OOMKilled{limit}" + (words and f": {words}"))
    if ended.reason not in _PLAIN:
        text = f"{text} {ended.reason}"
    elif ended.code in _SIGNALS:
        text = f"{text} {_SIGNALS[ended.code]}"
    meaning = words or MEANING.get(ended.code, "")
    return Reason(code="exit", text=text + (meaning and f": {meaning}"))


def _ends(task: Task) -> list[tuple[container.Ended | None, Reason]]:
    """Give what ended badly in a task's pod."""
    found: list[tuple[container.Ended | None, Reason]] = []
    if disrupted := _disruption(task):
        return [(None, disrupted)]
    for item in task.containers:
        if item.ended and item.ended.code and not item.sidecar:
            reason = run(item, item.ended)
            where = f"init container {item.name}: " if item.init else ""
            found.append((item.ended, Reason(code=reason.code, text=f"{where}{reason.text}")))
    if not found and task.phase == "Failed":
        status = raw.mapping(raw.at(task.pod, ("status",)))
        said = raw.text(status.get("message")) or raw.text(status.get("reason"))
        found.append((None, Reason(code="failed", text=f"failed: {said or 'no reason is given'}")))
    return found


def _disruption(task: Task) -> Reason | None:
    """Whether the cluster took the pod away: eviction, preemption, a lost node."""
    status = raw.mapping(raw.at(task.pod, ("status",)))
    mark = task.disruption
    if task.phase == "Failed" and status.get("reason") == "Evicted":
        mark = mark or status
    if mark is None or not (task.phase == "Failed" or task.leaving):
        return None
    said = raw.text(mark.get("message")) or raw.text(status.get("message"))
    verb = "was" if task.phase == "Failed" else "is being"
    text = f"{verb} taken away ({raw.text(mark.get('reason')) or 'Evicted'})"
    return Reason(code="disrupted", text=text + (said and f": {said}"))


def _order(ended: container.Ended | None) -> tuple[bool, str, bool]:
    """What came first: an end that follows from another's counts after all that do not."""
    if ended is None:
        return False, "", False
    return ended.code in _FOLLOWERS, ended.at, ended.code in _SIGNALS


def _job_failed(job: raw.JsonObject) -> Reason | None:
    for item in map(raw.mapping, raw.sequence(raw.at(job, ("status", "conditions")))):
        if item.get("type") == "Failed" and item.get("status") == "True":
            said = raw.text(item.get("message"))
            late = item.get("reason") == "DeadlineExceeded"
            name = raw.text(raw.at(job, ("metadata", "name")))
            text = sentence.cut(f"Job {name}: {said}")
            return Reason(code="deadline" if late else "failed", text=text)
    return None
