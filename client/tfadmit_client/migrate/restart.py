"""How failed pods are started again: TFJob's restart policies, and the gang's recipe.

Pure. TFJob starts pods again one by one; a batch Job can do nearly the same. With `gang` the
recipe of the shipped runtimes takes its place: all tasks start again together.
"""

from typing import Any

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import tfjob
from tfadmit_webhook import raw

UNLIMITED = 2**31 - 1
# The operator: 1 to 127 is permanent, anything above is started again.
_PERMANENT = list(range(1, 128))
_PROGRAM = [1, 2, 126, 127]
# How `tfadmit-fetch` ends, before the program, when data or results cannot be had.
_REFUSED = [2]
_MAX_RESTARTS = 2
_DISRUPTED = [{"type": "DisruptionTarget", "status": "True"}]
_PROGRAM_RULE = {
    "name": "program",
    "action": "FailJobSet",
    "onJobFailureReasons": ["PodFailurePolicy"],
}


def failure_policy(job: tfjob.TFJob, *, gang: bool, ledger: book.Ledger) -> dict[str, Any] | None:
    """Give what a failed Job means to the JobSet; None when it fails with the first one."""
    at = (*tfjob.POLICY, "backoffLimit")
    limit = job.policy.get("backoffLimit")
    if gang:
        restarts = _MAX_RESTARTS if limit is None else limit
        target = book.runtime("spec", "template", "spec", "failurePolicy", "maxRestarts")
        if limit is not None:
            ledger.nearly(at, "how often all tasks start again together", to=target)
        disruption = {
            "name": "disruption",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "onJobFailureMessagePatterns": ["FailJob rule at index 0"],
        }
        return {"maxRestarts": restarts, "rules": [disruption, dict(_PROGRAM_RULE)]}
    if limit is not None:
        _tell_limit(job, ledger)
    if any(replica.restart_policy == "ExitCode" for replica in job.replicas):
        return {"maxRestarts": 0, "rules": [dict(_PROGRAM_RULE)]}
    return None


def _tell_limit(job: tfjob.TFJob, ledger: book.Ledger) -> None:
    at = (*tfjob.POLICY, "backoffLimit")
    policies = {replica.restart_policy for replica in job.replicas}
    if policies == {"Never"}:
        ledger.exactly(at, "without effect, as before: no pod is started again")
        return
    what = "each replicated job counts its own restarts, TFJob counted all of them together"
    if "ExitCode" in policies:
        what += "; TFJob never reached it with ExitCode (its bug 2045)"
    ledger.nearly(at, what)


def apply(
    job: tfjob.TFJob,
    replica: tfjob.Replica,
    *,
    pod: dict[str, Any],
    to: raw.Path,
    gang: bool,
    ledger: book.Ledger,
) -> dict[str, Any]:
    """Set the pod's restart policy; give the fields of the batch Job that go with it."""
    index = replica.container
    work = _Restart(
        job=job, replica=replica, to=to, container=pod["spec"]["containers"][index]["name"]
    )
    work.tell_template(ledger)
    fields = work.gang(ledger) if gang else work.alone(ledger)
    policy = fields.pop("restartPolicy")
    pod["spec"] = {"restartPolicy": policy, **_without(pod["spec"], "restartPolicy")}
    return fields


class _Restart:
    def __init__(
        self, *, job: tfjob.TFJob, replica: tfjob.Replica, to: raw.Path, container: str
    ) -> None:
        self._job = job
        self._replica = replica
        self._to = to
        self._container = container
        self._path = (*replica.path, "restartPolicy")
        self._is_lenient = job.is_dynamic and replica.role == "worker"

    def tell_template(self, ledger: book.Ledger) -> None:
        stated = raw.at(self._replica.template, ("spec", "restartPolicy"))
        if stated is not None:
            ledger.exactly(
                (*self._replica.template_path, "spec", "restartPolicy"),
                "TFJob overwrote it by the restartPolicy of the replica type; so it is here",
            )

    def gang(self, ledger: book.Ledger) -> dict[str, Any]:
        """Give the shipped runtimes' recipe."""
        ledger.nearly(
            self._path,
            f"{self._replica.restart_policy} became a restart of all tasks together: after an "
            "eviction without counting it, not after exit codes 1, 2, 126 and 127 nor after 2 of "
            "any other container, else maxRestarts times",
            to=book.runtime(*self._to, "podFailurePolicy"),
        )
        rules = [
            {"action": "FailJob", "onPodConditions": _DISRUPTED},
            {"action": "FailJob", "onExitCodes": self._codes(_PROGRAM)},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": _REFUSED}},
        ]
        return {
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": rules},
            "restartPolicy": "Never",
        }

    def alone(self, ledger: book.Ledger) -> dict[str, Any]:
        """Give what is nearest to TFJob's policy."""
        policy = self._replica.restart_policy
        if policy == "ExitCode":
            return self._exit_code(ledger)
        if policy == "Never":
            return self._never(ledger)
        target = book.runtime(*self._to, "template", "spec", "restartPolicy")
        limit = self._limit()
        if policy == "Always":
            ledger.missing(
                self._path,
                "a Job does not allow Always, so it is OnFailure: a task that has ended with 0 "
                "is not started again",
                to=target,
                advice="usually nothing: parameter servers, say, never end by themselves",
            )
        else:
            ledger.nearly(
                self._path,
                "the same in the container; a pod that is evicted counts to backoffLimit of its "
                "own replicated job",
                to=target,
            )
        return {"backoffLimit": limit, "restartPolicy": "OnFailure"}

    def _never(self, ledger: book.Ledger) -> dict[str, Any]:
        target = book.runtime(*self._to, "backoffLimit")
        if self._is_lenient:
            ledger.nearly(
                self._path,
                "with enableDynamicWorker a failed worker does not fail the others; when all "
                "workers have ended and one has failed, the training has failed",
                to=book.runtime(*self._to, "backoffLimitPerIndex"),
            )
            return {"backoffLimitPerIndex": 0, "restartPolicy": "Never"}
        ledger.exactly(
            self._path, "no pod is started again, and the first failure ends it", to=target
        )
        return {"backoffLimit": 0, "restartPolicy": "Never"}

    def _exit_code(self, ledger: book.Ledger) -> dict[str, Any]:
        action, fails = "FailJob", "the training at once"
        if self._is_lenient:
            action, fails = "FailIndex", "this worker alone, as enableDynamicWorker has it"
        ledger.nearly(
            self._path,
            f"1 to 127 fails {fails}, other codes start the pod again, an eviction is not counted; "
            "the new pod has another name",
            to=book.runtime(*self._to, "podFailurePolicy"),
        )
        rules = [
            {"action": "Ignore", "onPodConditions": _DISRUPTED},
            {"action": action, "onExitCodes": self._codes(_PERMANENT)},
        ]
        limit = "backoffLimitPerIndex" if self._is_lenient else "backoffLimit"
        return {
            limit: self._limit(),
            "podFailurePolicy": {"rules": rules},
            "restartPolicy": "Never",
        }

    def _limit(self) -> int:
        return raw.count(self._job.policy.get("backoffLimit"), default=UNLIMITED)

    def _codes(self, values: list[int]) -> dict[str, Any]:
        return {"containerName": self._container, "operator": "In", "values": values}


def _without(content: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != key}
