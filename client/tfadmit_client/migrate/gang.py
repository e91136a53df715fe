"""Gang scheduling: TFJob's schedulingPolicy, and the PodGroup that Trainer makes.

Pure. Which scheduler TFJob used stood in a flag of the training operator, which no file shows;
what a TFJob states (a queue, a scheduler's name) tells it often.
"""

from typing import Any, Literal

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import pods, tfjob
from tfadmit_webhook import raw, runtime

Scheduler = Literal["volcano", "coscheduling", "none"]
CHOICES: tuple[Scheduler, ...] = ("volcano", "coscheduling", "none")
QUEUE = "scheduling.volcano.sh/queue-name"
_AT: raw.Path = (*tfjob.POLICY, "schedulingPolicy")
_POLICY = ("spec", "podGroupPolicy")
_NAMES = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}
# The flag of the operator for coscheduling, and the name that its chart gives the scheduler.
_COSCHEDULERS = frozenset(("scheduler-plugins", "scheduler-plugins-scheduler"))


def choose(job: tfjob.TFJob, *, stated: Scheduler | None) -> Scheduler | None:
    """Find the scheduler; None where the TFJob has a policy and nothing tells whose it is."""
    if stated:
        return stated
    policy = raw.mapping(job.policy.get("schedulingPolicy"))
    names = pods.names([replica.template for replica in job.replicas])
    if "volcano" in names or policy.get("queue") or policy.get("priorityClass"):
        return "volcano"
    if names & _COSCHEDULERS or policy.get("scheduleTimeoutSeconds") is not None:
        return "coscheduling"
    return None if policy else "none"


def policy(
    job: tfjob.TFJob, *, scheduler: Scheduler | None, ledger: book.Ledger
) -> dict[str, Any] | None:
    """Give the runtime's podGroupPolicy, and tell of each field of the schedulingPolicy."""
    stated = raw.mapping(job.policy.get("schedulingPolicy"))
    if scheduler in (None, "none"):
        _tell_nothing(stated, scheduler, ledger)
        return None
    ledger.nearly(
        (),
        f"one PodGroup of all {job.tasks} pods, for {scheduler}",
        to=book.runtime(*_POLICY),
    )
    _tell_sizes(job, stated, ledger)
    timeout = stated.get("scheduleTimeoutSeconds")
    if scheduler == "volcano":
        _tell_volcano(job, stated, ledger)
        return {"volcano": {}}
    _tell_coscheduling(stated, ledger)
    return {"coscheduling": {} if timeout is None else {"scheduleTimeoutSeconds": timeout}}


def annotations(job: tfjob.TFJob, *, scheduler: Scheduler | None) -> dict[str, str]:
    """Give the annotations of the JobSet: Trainer hands the queue on."""
    queue = raw.text(raw.at(job.policy, ("schedulingPolicy", "queue")))
    return {QUEUE: queue} if queue and scheduler == "volcano" else {}


def apply(
    job: tfjob.TFJob,
    *,
    replica: tfjob.Replica,
    pod: dict[str, Any],
    to: raw.Path,
    scheduler: Scheduler | None,
    ledger: book.Ledger,
) -> None:
    """Give a pod its scheduler and its priority, where the template has none."""
    spec = pod["spec"]
    if scheduler not in (None, "none"):
        name = spec.setdefault("schedulerName", _NAMES[scheduler])
        at = (*replica.template_path, "spec", "schedulerName")
        if scheduler == "coscheduling" and name == "scheduler-plugins":
            ledger.nearly(
                at,
                "is the name of the flag of the training operator",
                to=book.runtime(*to, "spec", "schedulerName"),
                advice="check that your scheduler has this name",
            )
    priority = raw.text(raw.at(job.policy, ("schedulingPolicy", "priorityClass")))
    if priority and scheduler == "volcano":
        spec.setdefault("priorityClassName", priority)


def _tell_nothing(stated: raw.JsonObject, scheduler: Scheduler | None, ledger: book.Ledger) -> None:
    for name in stated:
        if scheduler is None:
            ledger.missing(
                (*_AT, name),
                "the scheduler stands in the flag --gang-scheduler-name of the training operator",
                advice="say it: --gang volcano, coscheduling or none",
            )
        else:
            ledger.missing(
                (*_AT, name),
                "no gang was asked for",
                advice="usually nothing; --gang volcano or coscheduling makes a gang",
            )


def _tell_sizes(job: tfjob.TFJob, stated: raw.JsonObject, ledger: book.Ledger) -> None:
    least, at = stated.get("minAvailable"), (*_AT, "minAvailable")
    if least == job.tasks:
        ledger.exactly(at, "all pods, as the PodGroup has it", to=book.runtime(*_POLICY))
    elif least is not None:
        ledger.missing(
            at,
            f"a PodGroup of Trainer always waits for all {job.tasks} pods",
            advice="usually nothing, as TensorFlow waits for all tasks too; or --gang none",
        )
    if stated.get("minResources") is not None:
        ledger.missing(
            (*_AT, "minResources"),
            "Trainer sums up what the pods request",
            advice="state what the pods need in their requests",
        )


def _tell_volcano(job: tfjob.TFJob, stated: raw.JsonObject, ledger: book.Ledger) -> None:
    if stated.get("queue") is not None:
        to = book.runtime("spec", "template", "metadata", "annotations", QUEUE)
        ledger.exactly((*_AT, "queue"), "the annotation, which Trainer hands on", to=to)
    if stated.get("priorityClass") is not None:
        _tell_priority(job, stated["priorityClass"], ledger)
    if stated.get("scheduleTimeoutSeconds") is not None:
        ledger.exactly((*_AT, "scheduleTimeoutSeconds"), "without effect in Volcano, as before")


def _tell_priority(job: tfjob.TFJob, stated: str, ledger: book.Ledger) -> None:
    """Tell of the priority: Trainer looks for that of the PodGroup in the pods."""
    at, to = (*_AT, "priorityClass"), book.runtime(*runtime.JOBS_PATH)
    paths = ("spec", "priorityClassName")
    own = {raw.text(raw.at(replica.template, paths)) for replica in job.replicas} - {"", stated}
    if own:
        ledger.nearly(
            at,
            f"of the pods that state none; others keep {', '.join(sorted(own))}, and Trainer gives "
            "the PodGroup the first that it finds",
            to=to,
            advice="state the same priorityClassName in all pod templates",
        )
    else:
        ledger.exactly(at, "the priorityClassName of all pods", to=to)


def _tell_coscheduling(stated: raw.JsonObject, ledger: book.Ledger) -> None:
    if stated.get("scheduleTimeoutSeconds") is not None:
        to = book.runtime(*_POLICY, "coscheduling", "scheduleTimeoutSeconds")
        ledger.exactly((*_AT, "scheduleTimeoutSeconds"), "the same", to=to)
    for name in ("queue", "priorityClass"):
        if stated.get(name) is not None:
            ledger.exactly((*_AT, name), "without effect outside of Volcano, as before")
