"""A worker of a JobSet that our webhook did not see: its place, from what Kubernetes tells a pod.

What it needs, each as an environment variable or as a label in a file that the pod mounts by the
downward API (`labels` in /etc/podinfo, or in the directory that TFADMIT_PODINFO names):

=========================  ==================================================  ==================
variable                   label                                               default
=========================  ==================================================  ==================
TFADMIT_JOBSET             jobset.sigs.k8s.io/jobset-name                      none; claims it
TFADMIT_REPLICATED_JOB     jobset.sigs.k8s.io/replicatedjob-name               none
TFADMIT_REPLICAS           jobset.sigs.k8s.io/replicatedjob-replicas           none
TFADMIT_JOB_INDEX          jobset.sigs.k8s.io/job-index                        none
JOB_COMPLETION_INDEX       batch.kubernetes.io/job-completion-index            set by Kubernetes
TF_NUM_WORKERS             tfadmit.dev/num-workers                             none
TF_WORKER_PORT                                                                 12345
TFADMIT_SUBDOMAIN                                                              name of the JobSet
POD_NAMESPACE                                                                  service account's
=========================  ==================================================  ==================

The number of workers stands in no label of JobSet, so a user must state it; nothing is guessed. A
cluster with other roles than workers needs the webhook: a pod cannot see the other roles' sizes.
"""

import re
from typing import Final

from tfadmit_trainer import contract, pattern
from tfadmit_trainer.contract import Cluster, Task
from tfadmit_trainer.fault import SetupError
from tfadmit_trainer.host import Host

PODINFO_ENV: Final = "TFADMIT_PODINFO"
PODINFO_DIR: Final = "/etc/podinfo"  # as in the documentation of Kubernetes
JOBSET_ENV: Final = "TFADMIT_JOBSET"
REPLICATED_JOB_ENV: Final = "TFADMIT_REPLICATED_JOB"
REPLICAS_ENV: Final = "TFADMIT_REPLICAS"
JOB_INDEX_ENV: Final = "TFADMIT_JOB_INDEX"
COMPLETION_INDEX_ENV: Final = "JOB_COMPLETION_INDEX"
SUBDOMAIN_ENV: Final = "TFADMIT_SUBDOMAIN"
NAMESPACE_ENV: Final = "POD_NAMESPACE"

_LABELS: Final = {
    JOBSET_ENV: contract.JOBSET_NAME_LABEL,
    REPLICATED_JOB_ENV: contract.REPLICATED_JOB_LABEL,
    REPLICAS_ENV: "jobset.sigs.k8s.io/replicatedjob-replicas",
    JOB_INDEX_ENV: contract.JOB_INDEX_LABEL,
    COMPLETION_INDEX_ENV: contract.COMPLETION_INDEX_ANNOTATION,
    contract.NUM_WORKERS_ENV: contract.NUM_WORKERS_LABEL,
}
_NAMESPACE_FILE: Final = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
# `key="value"`, the value escaped as Go writes strings; labels hold nothing that needs it.
_LINE: Final = re.compile(r'([^=\s]+)="([^"\\]*)"')


class Place:
    """What Kubernetes tells about this pod, by the name of the variable."""

    def __init__(self, host: Host) -> None:
        self._environ = host.environ
        directory = host.environ.get(PODINFO_ENV) or PODINFO_DIR
        self._file = f"{directory}/labels"
        self._labels = dict(_LINE.findall(host.read(self._file) or ""))

    def get(self, name: str) -> str:
        """Give a value, or nothing."""
        return self._environ.get(name) or self._labels.get(_LABELS.get(name, ""), "")

    def need(self, name: str) -> str:
        """Give a value that must be there."""
        if value := self.get(name):
            return value
        raise SetupError(self._how_to_state(name))

    def number(self, name: str, *, low: int) -> int:
        """Give a number that must be there."""
        value = self.need(name)
        if value.isascii() and value.isdigit() and int(value) >= low:
            return int(value)
        raise SetupError(f"{name} is {value!r}: it must be a number from {low}")

    def _how_to_state(self, name: str) -> str:
        label = _LABELS[name]
        start = f"this pod belongs to JobSet {self.get(JOBSET_ENV)!r}, but {name} is not known"
        if name == contract.NUM_WORKERS_ENV:
            return (
                f"{start}, and a wrong number hangs a training: state it, env {name} in the "
                "runtime (the webhook of tfadmit would do all this)"
            )
        return (
            f"{start}: give the container\n- name: {name}\n"
            f"  valueFrom: {{fieldRef: {{fieldPath: \"metadata.labels['{label}']\"}}}}\n"
            f"or mount the pod's labels by the downward API at {self._file}"
        )


def claims(host: Host) -> bool:
    """Whether this pod says that it belongs to a JobSet."""
    return bool(Place(host).get(JOBSET_ENV))


def task(host: Host) -> Task:
    """Compute this pod's place in its JobSet.

    Raises:
        SetupError: something is not stated, or contradicts the rest.
    """
    place = Place(host)
    jobset, job = place.need(JOBSET_ENV), place.need(REPLICATED_JOB_ENV)
    if job in ("chief", "master", "ps", "evaluator"):
        raise SetupError(
            f"this pod is of replicated job {job!r}; without the webhook of tfadmit only clusters "
            "of workers can be computed: install it, or set TF_CONFIG yourself"
        )
    replicas, workers = place.number(REPLICAS_ENV, low=1), _workers(place)
    completions, rest = divmod(workers, replicas)
    if rest:
        raise SetupError(
            f"{contract.NUM_WORKERS_ENV}={workers} does not fit the {replicas} jobs of replicated "
            f"job {job!r}: each has the same number of tasks"
        )
    first, second = place.number(JOB_INDEX_ENV, low=0), place.number(COMPLETION_INDEX_ENV, low=0)
    if first >= replicas or second >= completions:
        raise SetupError(
            f"this pod is task {second} of job {first}, but {contract.NUM_WORKERS_ENV}={workers} "
            f"makes {replicas} jobs of {completions} tasks: correct the number of workers"
        )
    suffix = domain(host, subdomain=place.get(SUBDOMAIN_ENV) or jobset)
    numbers = f"{pattern.numbers(replicas)}-{pattern.numbers(completions)}"
    addresses = f"{jobset}-{job}-{numbers}.{suffix}:{port(host)}"
    return Task(
        cluster=Cluster(worker=(addresses,)), role="worker", index=first * completions + second
    )


def _workers(place: Place) -> int:
    workers = place.number(contract.NUM_WORKERS_ENV, low=1)
    if workers > pattern.MAX_TASKS:
        raise SetupError(f"{contract.NUM_WORKERS_ENV}={workers} is more than {pattern.MAX_TASKS:,}")
    return workers


def port(host: Host) -> int:
    """Give the rendezvous port."""
    text = host.environ.get(contract.PORT_ENV) or str(contract.DEFAULT_PORT)
    if text.isascii() and text.isdigit() and 0 < int(text) < 65536:
        return int(text)
    raise SetupError(f"{contract.PORT_ENV} is {text!r}: it must be a port, 1 to 65535")


def domain(host: Host, *, subdomain: str) -> str:
    """Give what follows a pod's host name.

    Where the namespace is not known, the search domains of the pod complete the short form.
    """
    namespace = host.environ.get(NAMESPACE_ENV) or (host.read(_NAMESPACE_FILE) or "").strip()
    return f"{subdomain}.{namespace}.svc.cluster.local" if namespace else subdomain
