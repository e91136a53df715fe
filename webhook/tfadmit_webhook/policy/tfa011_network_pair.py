"""TFA011: a network and the resource behind it go together.

An attachment without the device fails when the pod starts; a device without the attachment stays
unused. The webhook attaches the profile's network to pods that request its resource, so the
mistake is a network in the template and no resource. Kubernetes demands requests = limits of
extended resources, and says so only when the pods are created.
"""

import fnmatch
from collections.abc import Iterator

from tfadmit_trainer import contract
from tfadmit_webhook import network, raw, runtime, workload
from tfadmit_webhook.policy.rule import Case, Finding, Rule
from tfadmit_webhook.settings import NetworkProfile


def check(case: Case) -> Iterator[Finding]:
    """Find networks without their resource, and extended resources that Kubernetes refuses."""
    for job in case.tasks:
        for profile in case.settings.network_profiles:
            yield from _unpaired(job, profile)
        for container in job.pod.containers():
            yield from _unequal(container, at=job.template_path)


def _unpaired(job: runtime.Job, profile: NetworkProfile) -> Iterator[Finding]:
    stated = job.pod.annotations.get(contract.NETWORKS_ANNOTATION, "")
    # The namespace of a runtime's pods is not known yet; a bare name means any.
    attached = {name.rpartition("/")[2] for name in network.names(stated)}
    if not profile.attach or profile.attach.rpartition("/")[2] not in attached:
        return
    requested = {name for item in job.pod.containers() for name in item.resources()}
    if not any(fnmatch.filter(requested, wanted) for wanted in profile.resources):
        yield Finding(
            path=(*job.template_path, "metadata", "annotations", contract.NETWORKS_ANNOTATION),
            what=f"attaches {profile.attach!r}, and no container requests {profile.resources[0]}",
            fix="remove it, the webhook adds it to pods that request the resource",
        )


def _unequal(container: workload.Container, *, at: raw.Path) -> Iterator[Finding]:
    resources = raw.mapping(container.content.get("resources"))
    limits = raw.mapping(resources.get("limits"))
    requests = raw.mapping(resources.get("requests"))
    for name in sorted({*limits, *requests}):
        limit, request = limits.get(name), requests.get(name)
        # Kubernetes takes the limit for a request that is not stated.
        if _is_extended(name) and request is not None and str(limit) != str(request):
            yield Finding(
                path=(*at, *container.path, "resources", "limits", name),
                what=f"is {'missing' if limit is None else limit} for a request of {request}",
                fix=f'`{name}: "{request}"`',
            )


def _is_extended(name: str) -> bool:
    # Resources of Kubernetes itself have no domain, or kubernetes.io.
    domain, slash, _ = name.rpartition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


RULE = Rule(
    id="TFA011",
    name="network-pair",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="such pods are refused or fail when they start",
    check=check,
)
