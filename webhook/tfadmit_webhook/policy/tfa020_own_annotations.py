"""TFA020: what a pod template says to tfadmit can be understood.

The port, the form of addresses, the containers, a stated cluster and the list of networks are read
when a pod is admitted. A value that makes no sense refuses every pod of every TrainJob on the
runtime, and their owners cannot mend it.
"""

from collections.abc import Iterator

from tfadmit_trainer import contract
from tfadmit_webhook import network, runtime, workload
from tfadmit_webhook.decision import Refusal
from tfadmit_webhook.policy.rule import Case, Finding, Rule, one_of
from tfadmit_webhook.settings import Settings


def check(case: Case) -> Iterator[Finding]:
    """Find values for which pods are refused."""
    for job in case.tasks:
        for problem in workload.address_problems(job.pod):
            what, _, fix = problem.partition(": ")
            yield Finding(path=job.template_path, what=f"states: {what}", fix=fix)
        yield from _containers(job)
        yield from _cluster(job)
        yield from _networks(job, case.settings)


def _containers(job: runtime.Job) -> Iterator[Finding]:
    known = [container.name for container in job.pod.containers()]
    for name in workload.named_containers(job.pod):
        if name not in known:
            yield Finding(
                path=(
                    *job.template_path,
                    "metadata",
                    "annotations",
                    contract.CONTAINERS_ANNOTATION,
                ),
                what=f"names {name!r}, which is no container of the pods",
                fix=f"{one_of(known)}, or no such annotation",
            )


def _cluster(job: runtime.Job) -> Iterator[Finding]:
    text = job.pod.annotations.get(contract.CLUSTER_ANNOTATION)
    if not text:
        return
    try:
        contract.decode(text)
    except contract.ContractError as error:
        yield Finding(
            path=(*job.template_path, "metadata", "annotations", contract.CLUSTER_ANNOTATION),
            what=f"cannot be read ({error})",
            fix="remove it, the cluster follows from the JobSet",
        )


def _networks(job: runtime.Job, settings: Settings) -> Iterator[Finding]:
    stated = job.pod.annotations.get(contract.NETWORK_ANNOTATION)
    targets = workload.target_containers(job.pod)
    resources = (name for target in targets for name in target.resources())
    profile = network.choose(settings.network_profiles, resources=resources, stated=stated)
    existing = job.pod.annotations.get(contract.NETWORKS_ANNOTATION)
    found = network.attachments(profile=profile, stated=stated, existing=existing, namespace="")
    if isinstance(found, Refusal):
        yield Finding(
            path=(*job.template_path, "metadata", "annotations", contract.NETWORKS_ANNOTATION),
            what="begins like a JSON list and is none",
            fix="names with commas, or remove it",
        )


RULE = Rule(
    id="TFA020",
    name="own-annotations",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="every pod of every TrainJob on it would be refused",
    check=check,
)
