"""Where a cluster comes from: the order of the sources, and when one is a fault.

An environment that claims to know the cluster and is broken is never passed over for the next
source: the task would train alone and overwrite what the others save.
"""

from dataclasses import dataclass
from typing import Final

from tfadmit_trainer import contract, discovery, downward, encoding, tfconfig
from tfadmit_trainer.context import Source
from tfadmit_trainer.contract import Cluster, Task
from tfadmit_trainer.fault import SetupError
from tfadmit_trainer.host import Host

_CLAIMS: Final = (
    contract.CLUSTER_ENV,
    contract.TASK_TYPE_ENV,
    contract.TASK_INDEX_ENV,
    contract.ATTEMPT_ENV,
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A cluster, this task in it, and why it was taken."""

    task: Task
    source: Source
    reason: str
    replaces: bool = False
    """Whether a TF_CONFIG that is there is to be written anew."""


def find(host: Host, *, attempts: int) -> Found:
    """Take the first source that knows the cluster.

    Raises:
        SetupError: a source claims to know it and is broken.
        DiscoveryError: the last resort, DNS, did not show the workers in time.
    """
    text = host.environ.get(contract.TF_CONFIG_ENV)
    claims = [name for name in _CLAIMS if name in host.environ]
    if contract.CLUSTER_ENV in claims:
        return _from_tfadmit(host, text)
    if text is not None:
        return _from_tf_config(host, text, reason="TF_CONFIG is set, and not by tfadmit's webhook")
    if claims:
        raise SetupError(
            f"{claims[0]} is set as by tfadmit's webhook, but {contract.CLUSTER_ENV} is not, so "
            "the other tasks are not known: the webhook sets them together. Take the variable out "
            "of the template when it is your own; else see `kubectl get pod NAME -o yaml`"
        )
    return _without_webhook(host, attempts=attempts)


def _from_tfadmit(host: Host, text: str | None) -> Found:
    try:
        task = encoding.task_from(host.environ)
    except contract.ContractError as error:
        raise SetupError(
            f"{contract.CLUSTER_ENV} is set, but the environment is broken: {error}. It is not "
            "passed over, because this task would then train alone. Take your own settings of "
            f"{', '.join(_CLAIMS)} out of the template; the webhook sets them"
        ) from error
    if text is None or tfconfig.same(text, task=task):
        return Found(task=task, source="tfadmit", reason="set by tfadmit")
    return _from_tf_config(
        host, text, reason="your own TF_CONFIG goes before what tfadmit's webhook computed"
    )


def _from_tf_config(host: Host, text: str, *, reason: str) -> Found:
    read = tfconfig.read(text)
    if read.task is None:
        return Found(task=_alone(host), source="tf_config", reason=f"{reason}; it lists no cluster")
    if read.evaluator_for_all:
        host.warn(
            "your TF_CONFIG lists the evaluator in the cluster of a task that is not the "
            "evaluator; ParameterServerStrategy then waits for it without end. It is left out "
            "here: list it in the evaluator's own TF_CONFIG only"
        )
    return Found(task=read.task, source="tf_config", reason=reason, replaces=read.evaluator_for_all)


def _without_webhook(host: Host, *, attempts: int) -> Found:
    none = "no TF_CONFIG and nothing of tfadmit's webhook"
    if downward.claims(host):
        return Found(
            task=downward.task(host), source="jobset", reason=f"{none}; JobSet's labels are there"
        )
    if discovery.claims(host):
        host.say(f"{none}, no JobSet labels: counting workers by DNS, for host {host.name}")
        return Found(
            task=discovery.discover_workers(host, attempts=attempts),
            source="discovery",
            reason=f"{none}, no JobSet labels; counted by DNS, which shows who is there by now: "
            f"state {contract.NUM_WORKERS_ENV} to be sure",
        )
    _check_alone(host)
    reason = f"{none}, no JobSet labels, and host {host.name} is not called like train-node-0-1"
    return Found(task=_alone(host), source="single", reason=reason)


def _check_alone(host: Host) -> None:
    workers = host.environ.get(contract.NUM_WORKERS_ENV, "1")
    if workers not in ("", "1"):
        raise SetupError(
            f"{contract.NUM_WORKERS_ENV}={workers} states several workers, but nothing says where "
            "they are: no TF_CONFIG, nothing of tfadmit's webhook, no labels of JobSet, and host "
            f"{host.name} is not called like train-node-0-1. Was this pod admitted by tfadmit? "
            "(label trainer.kubeflow.org/framework: tensorflow)"
        )
    index = host.environ.get(downward.COMPLETION_INDEX_ENV, "0")
    if index not in ("", "0"):
        host.warn(
            f"{downward.COMPLETION_INDEX_ENV}={index}: this pod is one of several of its Job, but "
            "nothing says where the others are. It trains ALONE. That is right for independent "
            "trainings only"
        )


def _alone(host: Host) -> Task:
    return Task(
        cluster=Cluster(worker=(f"localhost:{downward.port(host)}",)), role="worker", index=0
    )
