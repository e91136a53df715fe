"""When a training has succeeded, and what stays of it afterwards.

Pure. TFJob looked at the chief, else at worker 0 or at all workers; what still ran then was the
matter of cleanPodPolicy. A JobSet looks at replicated jobs, and ends those that still run.
"""

from collections.abc import Sequence
from typing import Any

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import tfjob
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_SUCCESS: raw.Path = ("spec", "successPolicy")
_TARGET = book.runtime("spec", "template", "spec", "successPolicy")


def success_policy(
    job: tfjob.TFJob, *, names: Sequence[str], ledger: book.Ledger
) -> dict[str, Any]:
    """Give the JobSet's success policy; `names` are the replicated jobs in the replicas' order."""
    roles = [replica.role for replica in job.replicas]
    ends: contract.Role = "chief" if "chief" in roles else "worker"
    stated = raw.at(job.content, _SUCCESS)
    if ends == "chief" and stated is not None:
        ledger.exactly(_SUCCESS, "without effect, as before: the chief decides", to=_TARGET)
    elif stated == "AllWorkers":
        ledger.exactly(_SUCCESS, "all workers", to=_TARGET)
    elif stated is not None:
        ledger.exactly(_SUCCESS, "the default: worker 0, or all workers", to=_TARGET)
    if "evaluator" in roles:
        ledger.nearly(
            (),
            "the training ends with the others, and the evaluator is ended then, as TFJob did by "
            "cleanPodPolicy Running",
            to=_TARGET,
            advice="to wait for its last evaluation, add it to targetReplicatedJobs; its program "
            "must end by itself then",
        )
    return {"operator": "All", "targetReplicatedJobs": [names[roles.index(ends)]]}


def worker_success(
    job: tfjob.TFJob, replica: tfjob.Replica, *, to: raw.Path, ledger: book.Ledger
) -> dict[str, Any]:
    """Give the fields of the workers' batch Job that make worker 0 decide."""
    has_chief = any(item.role == "chief" for item in job.replicas)
    all_workers = raw.at(job.content, _SUCCESS) == "AllWorkers"
    if replica.role != "worker" or has_chief or all_workers or replica.count == 1:
        return {}
    ledger.nearly(
        (),
        "success is that of worker 0, as TFJob's default was; the other workers are ended then at "
        "once",
        to=book.runtime(*to, "successPolicy"),
        advice="if they still have something to do, remove these lines: then all workers must end",
    )
    return {"successPolicy": {"rules": [{"succeededIndexes": "0"}]}}


def tell_cleaning(job: tfjob.TFJob, *, ledger: book.Ledger) -> None:
    """Tell what becomes of pods and of the job itself after the end."""
    _tell_pods(job, ledger)
    _tell_time(job, ledger)
    at = (*tfjob.POLICY, "activeDeadlineSeconds")
    if job.policy.get("activeDeadlineSeconds") is not None:
        ledger.exactly(
            at,
            "counted from the start, and anew after a suspension; Trainer 2.2 and newer",
            to=book.trainjob("spec", "activeDeadlineSeconds"),
        )


def _tell_pods(job: tfjob.TFJob, ledger: book.Ledger) -> None:
    at, policy = (*tfjob.POLICY, "cleanPodPolicy"), job.policy.get("cleanPodPolicy")
    if policy == "Running":
        ledger.exactly(at, "pods that still run at the end are deleted, finished ones stay")
    elif policy == "All":
        ledger.missing(
            at,
            "finished pods and their logs stay as long as the TrainJob",
            advice="delete the TrainJob once you have what you need of it",
        )
    elif policy is not None:
        ledger.missing(
            at,
            "pods that still run when the training has ended are deleted, so none is left over, "
            "and none can be kept running",
            advice="usually nothing; what must end by itself can be added to "
            "successPolicy.targetReplicatedJobs",
        )
    elif len(job.replicas) > 1 or job.tasks > 1:
        ledger.nearly(
            (),
            "pods that still run when the training has ended are deleted; without a "
            "cleanPodPolicy TFJob left them running",
            to=_TARGET,
        )


def _tell_time(job: tfjob.TFJob, ledger: book.Ledger) -> None:
    if (seconds := job.policy.get("ttlSecondsAfterFinished")) is None:
        return
    ledger.missing(
        (*tfjob.POLICY, "ttlSecondsAfterFinished"),
        "a TrainJob stays until somebody deletes it; a time in the runtime would delete the JobSet "
        "only, and Trainer up to 2.3.0 then runs a failed training again",
        advice=f"delete TrainJobs that have ended, or with a newer Trainer write "
        f"`ttlSecondsAfterFinished: {seconds}` into the runtime's template.spec to delete the pods",
    )
