"""TFA020: what a runtime says to tfadmit can be understood.

The port, the form of addresses, the containers, a stated cluster, the list of networks, data and
results are read when a pod is admitted, the numbers of roles when a JobSet is. A value that makes
no sense refuses every pod of every TrainJob on the runtime, and their owners cannot mend it.
Numbers of roles stand in `spec.template.metadata.annotations`, and are read nowhere else in a
runtime.
"""

from collections.abc import Iterator

from tfadmit_trainer import contract, encoding
from tfadmit_webhook import jobset_counted, network, raw, runtime, storage, trainjob, workload
from tfadmit_webhook.decision import Refusal
from tfadmit_webhook.policy.rule import Case, Finding, Rule, one_of
from tfadmit_webhook.settings import Settings

_OWN: raw.Path = ("metadata", "annotations")
_REPLICAS: raw.Path = ("spec", "template", *_OWN, contract.REPLICAS_ANNOTATION)


def check(case: Case) -> Iterator[Finding]:
    """Find values for which pods are refused, and numbers of roles that nobody reads."""
    yield from _replicas(case)
    yield from _misplaced(case)
    for job in case.tasks:
        for problem in workload.address_problems(job.pod):
            what, _, fix = problem.partition(": ")
            yield Finding(path=job.template_path, what=f"states: {what}", fix=fix)
        yield from _containers(job)
        yield from _cluster(job)
        yield from _networks(job, case.settings)
        yield from _storage(job, case.settings)


def _replicas(case: Case) -> Iterator[Finding]:
    text = raw.at(case.content, _REPLICAS)
    if not isinstance(text, str):
        return
    found = trainjob.trainers_jobs({}, case.content)
    sizes = trainjob.roles(found, text)
    if isinstance(sizes, trainjob.Fault):
        fault: trainjob.Fault | None = sizes
    else:
        gang = runtime.is_gang(case.content)
        fault = jobset_counted.by_pod_group(found, sizes, text=text) if gang else None
    if fault:
        yield Finding(
            path=_REPLICAS,
            what=fault.what,
            fix=fault.fix,
            why="every JobSet of a TrainJob that states no other numbers would be refused",
        )


def _misplaced(case: Case) -> Iterator[Finding]:
    """Find numbers of roles on the runtime itself, on a Job and on pods."""
    jobs = ((*job.path, "template", *_OWN) for job in case.jobs)
    pods = ((*job.template_path, *_OWN) for job in case.jobs)
    for place in (_OWN, *jobs, *pods):
        if contract.REPLICAS_ANNOTATION in raw.mapping(raw.at(case.content, place)):
            yield Finding(
                path=(*place, contract.REPLICAS_ANNOTATION),
                what="has no effect",
                fix=f"write it in {raw.dotted(_REPLICAS[:-1])}",
                why="the numbers of roles are read from the annotations of the JobSet",
                only_warn=True,
            )


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
        encoding.decode(text)
    except contract.ContractError as error:
        yield Finding(
            path=(*job.template_path, "metadata", "annotations", contract.CLUSTER_ANNOTATION),
            what=f"cannot be read ({error})",
            fix="remove it, the cluster follows from the JobSet",
        )


def _storage(job: runtime.Job, settings: Settings) -> Iterator[Finding]:
    found = storage.wish(job.pod, settings=settings.transfer)
    if isinstance(found, Refusal):
        what, _, words = found.message.removeprefix("annotation ").partition(": ")
        why, _, fix = words.rpartition(": ")
        yield Finding(
            path=(*job.template_path, "metadata", "annotations", what),
            what=f"cannot be had: {why or words}",
            fix=fix if why else "mend it, or remove it",
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
