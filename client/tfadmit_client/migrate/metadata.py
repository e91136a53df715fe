"""The TFJob's own metadata, and what surrounds the pods: names, labels, suspension. Pure."""

from typing import Any

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import tfjob
from tfadmit_webhook import raw

_SERVER = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
    "managedFields", "resourceVersion", "selfLink", "uid",
)  # fmt: skip
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUEUE = "kueue.x-k8s.io/queue-name"
_MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def trainjob(job: tfjob.TFJob, *, name: str, ledger: book.Ledger) -> dict[str, Any]:
    """Give the metadata of the TrainJob."""
    stated = job.metadata
    made = _name(job, name=name, ledger=ledger)
    if namespace := raw.text(stated.get("namespace")):
        made["namespace"] = namespace
        ledger.exactly(("metadata", "namespace"), "of both objects")
    for key in ("labels", "annotations"):
        if kept := _copied(job, key, ledger):
            made[key] = kept
    for key in _SERVER:
        if stated.get(key) is not None:
            ledger.exactly(("metadata", key), "left out: the API server writes it")
    for key in ("ownerReferences", "finalizers"):
        if stated.get(key):
            ledger.missing(
                ("metadata", key),
                "left out: another object made this TFJob, or waits for its end",
                advice="let whatever made the TFJob make the TrainJob",
            )
    if job.content.get("status") is not None:
        ledger.exactly(("status",), "left out: the state of the old job")
    return made


def tell_names(job: tfjob.TFJob, *, name: str, ledger: book.Ledger) -> None:
    """Tell what is called otherwise from now on."""
    kinds = dict.fromkeys(replica.type.lower() for replica in job.replicas)
    old = ", ".join(f"{job.name}-{kind}-0" for kind in kinds)
    jobs = dict.fromkeys(replicated_job(job, replica) for replica in job.replicas)
    new = ", ".join(f"{name}-{item}-0-0" for item in jobs)
    ledger.nearly(
        (),
        f"host names are {new} below {name}, and were {old} with a Service each; TF_CONFIG has the "
        "new ones, and no field environment. Pods have the labels of JobSet, not those of the "
        "training operator",
        to=book.runtime("spec", "template", "spec", "replicatedJobs"),
        advice="look for pods by jobset.sigs.k8s.io/jobset-name and replicatedjob-name",
    )
    if any(replica.type == "Master" for replica in job.replicas):
        ledger.nearly(
            (),
            "the role master is called chief: TensorFlow 2 refuses master in TF_CONFIG",
            to=book.runtime("spec", "template", "spec", "replicatedJobs"),
            advice='a program that asks for the task type "master" must ask for "chief"',
        )
    if any(replica.role == "evaluator" for replica in job.replicas):
        ledger.nearly(
            (),
            "the evaluator stands in its own TF_CONFIG only; in everybody's, "
            "ParameterServerStrategy waits for it without end",
            to=book.runtime("spec", "template", "spec", "replicatedJobs"),
        )
    if job.tasks == 1:
        ledger.nearly(
            (),
            "TFJob gave a single task no TF_CONFIG; tfadmit gives it one with this one task",
            to=book.runtime("spec", "mlPolicy"),
        )


def replicated_job(job: tfjob.TFJob, replica: tfjob.Replica) -> str:
    """Give the name of the replicated job that a replica type becomes."""
    return tfjob.STEP_CONTAINER if replica is job.step else replica.role


def spec(job: tfjob.TFJob, ledger: book.Ledger) -> dict[str, Any]:
    """Give what a TrainJob states beside its runtime and its number of nodes."""
    made: dict[str, Any] = {}
    manager, at = job.policy.get("managedBy"), (*tfjob.POLICY, "managedBy")
    if manager == _MULTIKUEUE:
        made["managedBy"] = manager
        ledger.exactly(at, "the same", to=book.trainjob("spec", "managedBy"))
    elif manager is not None:
        ledger.exactly(at, "the default of both")
    if (suspend := job.policy.get("suspend")) is not None:
        made["suspend"] = suspend
        ledger.exactly((*tfjob.POLICY, "suspend"), "the same", to=book.trainjob("spec", "suspend"))
    if (seconds := job.policy.get("activeDeadlineSeconds")) is not None:
        made["activeDeadlineSeconds"] = seconds
    return made


def _name(job: tfjob.TFJob, *, name: str, ledger: book.Ledger) -> dict[str, Any]:
    stated, prefix = raw.text(job.metadata.get("name")), job.metadata.get("generateName")
    if name == stated:
        if prefix is not None:
            ledger.exactly(("metadata", "generateName"), "without effect beside a name")
        ledger.exactly(("metadata", "name"), "of both objects")
        return {"name": name}
    if not stated and name == job.name:
        ledger.nearly(
            ("metadata", "generateName"),
            f"of the TrainJob; the runtime is {name}, and all of these TrainJobs use it",
            to=book.trainjob("metadata", "generateName"),
            advice="`kubectl create` for the TrainJob, `kubectl apply` for the runtime",
        )
        return {"generateName": prefix}
    for key in ("name", "generateName"):
        if job.metadata.get(key) is not None:
            ledger.nearly(("metadata", key), f"is {name}, as --name says")
    return {"name": name}


def _copied(job: tfjob.TFJob, key: str, ledger: book.Ledger) -> dict[str, Any]:
    kept = dict(raw.mapping(job.metadata.get(key)))
    if kept.pop(_LAST_APPLIED, None) is not None:
        ledger.exactly(("metadata", key, _LAST_APPLIED), "left out: kubectl writes it anew")
    for name in kept:
        what = "of the TrainJob"
        if name == _KUEUE:
            what += "; Kueue must have its integration trainer.kubeflow.org/trainjob switched on"
        ledger.exactly(("metadata", key, name), what, to=book.trainjob("metadata", key, name))
    return kept
