"""From a JobSet to its Jobs, as the JobSet controller 0.12 makes them. Pure.

Follows `pkg/webhooks/jobset_webhook.go` (defaults) and `constructJob` in
`pkg/controllers/jobset_controller.go`, with its alpha features off; the labels stand in `marks`.
"""

from collections.abc import Iterator

from tfadmit_client.expand import merge
from tfadmit_client.expand.marks import EXCLUSIVE, View, marks_of
from tfadmit_client.expand.remark import Remark, uid
from tfadmit_webhook import raw

# A DNS label; the pod's name has five random characters and a dash after the host name.
_LONGEST_NAME = 63
_SUFFIX = "-abcde"


def defaulted(content: raw.JsonObject, *, namespace: str) -> raw.JsonObject:
    """Give the JobSet with what the API server and JobSet's webhook fill in."""
    copy = merge.without_nulls(content)
    name = raw.text(raw.at(copy, ("metadata", "name")))
    spec = raw.mapping(copy.get("spec"))
    network = {
        "enableDNSHostnames": True,
        "publishNotReadyAddresses": True,
        **raw.mapping(spec.get("network")),
    }
    return {
        **copy,
        "metadata": {
            **raw.mapping(copy.get("metadata")),
            "namespace": namespace,
            "uid": uid("JobSet", namespace=namespace, name=name, content=copy),
        },
        "spec": {
            "successPolicy": {"operator": "All"},
            "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
            **spec,
            "network": network,
            "replicatedJobs": [
                _defaulted_job(raw.mapping(item))
                for item in raw.sequence(spec.get("replicatedJobs"))
            ],
        },
    }


def _defaulted_job(job: raw.JsonObject) -> raw.JsonObject:
    template = raw.mapping(job.get("template"))
    spec = raw.mapping(template.get("spec"))
    pod = raw.mapping(spec.get("template"))
    pod_spec = raw.mapping(pod.get("spec"))
    return {
        "groupName": "default",
        "replicas": 1,
        **job,
        "template": {
            **template,
            "spec": {
                "completionMode": "Indexed",
                **spec,
                "template": {**pod, "spec": {"restartPolicy": "OnFailure", **pod_spec}},
            },
        },
    }


def remarks(jobset: raw.JsonObject) -> Iterator[Remark]:
    """Say what a cluster would refuse in a JobSet, or do beyond what is shown."""
    name = raw.text(raw.at(jobset, ("metadata", "name")))
    for item in raw.sequence(raw.at(jobset, ("spec", "replicatedJobs"))):
        job = raw.mapping(item)
        completions = raw.count(raw.at(job, ("template", "spec", "completions")), default=1)
        replicas = raw.count(job.get("replicas"), default=1)
        host = (
            f"{name}-{raw.text(job.get('name'))}-{max(replicas - 1, 0)}-{max(completions - 1, 0)}"
        )
        if (excess := len(host + _SUFFIX) - _LONGEST_NAME) > 0:
            yield Remark(
                text=f"JobSet refuses this: its longest pod name, {host}{_SUFFIX}, has "
                f"{excess} characters more than {_LONGEST_NAME}; shorten the name {name!r} by "
                f"{excess}",
                refused=True,
            )
    if raw.at(jobset, ("spec", "network", "enableDNSHostnames")) is False:
        yield Remark(
            text="network.enableDNSHostnames is false: the pods get no subdomain, and no address "
            "resolves; fix: `enableDNSHostnames: true`, or no such line"
        )
    if raw.at(jobset, ("spec", "network", "publishNotReadyAddresses")) is False:
        yield Remark(
            text="network.publishNotReadyAddresses is false: pods that are not ready have no DNS "
            "names, and tasks connect before they are; fix: `publishNotReadyAddresses: true`"
        )
    if EXCLUSIVE in raw.mapping(raw.at(jobset, ("metadata", "annotations"))):
        yield Remark(text="exclusive placement: the node selectors that JobSet adds are not shown")


def jobs(jobset: raw.JsonObject) -> Iterator[raw.JsonObject]:
    """Give every Job of a JobSet that has its defaults."""
    view = View(jobset)
    for item in raw.sequence(raw.at(jobset, ("spec", "replicatedJobs"))):
        replicated = raw.mapping(item)
        for index in range(view.replicas(replicated)):
            yield _job(view, replicated, index)


def _job(view: View, replicated: raw.JsonObject, index: int) -> raw.JsonObject:
    template = raw.mapping(replicated.get("template"))
    spec = raw.mapping(template.get("spec"))
    pod = raw.mapping(spec.get("template"))
    name = f"{view.name}-{raw.text(replicated.get('name'))}-{index}"
    mark = marks_of(view, replicated, index, job=name)
    pod_spec = dict(raw.mapping(pod.get("spec")))
    if raw.at(view.spec, ("network", "enableDNSHostnames")) is not False:
        pod_spec["subdomain"] = view.subdomain
    if claims := list(_claims(view, pod_spec)):
        pod_spec["volumes"] = [*raw.sequence(pod_spec.get("volumes")), *claims]
    owner = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": view.name,
        "uid": view.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **mark.on(template.get("metadata")),
            "name": name,
            "namespace": view.namespace,
            "uid": uid("Job", namespace=view.namespace, name=name),
            "ownerReferences": [owner],
        },
        "spec": {
            **spec,
            "suspend": view.spec.get("suspend") is True,
            "template": {**pod, "metadata": mark.on(pod.get("metadata")), "spec": pod_spec},
        },
    }


def _claims(view: View, pod_spec: raw.JsonObject) -> Iterator[raw.JsonObject]:
    """Give the volumes of `volumeClaimPolicies` that a container of the pod mounts."""
    mounted = {
        raw.text(raw.mapping(mount).get("name"))
        for kind in ("containers", "initContainers")
        for container in raw.sequence(pod_spec.get(kind))
        for mount in raw.sequence(raw.mapping(container).get("volumeMounts"))
    }
    for policy in raw.sequence(view.spec.get("volumeClaimPolicies")):
        for template in raw.sequence(raw.mapping(policy).get("templates")):
            name = raw.text(raw.at(template, ("metadata", "name")))
            if name in mounted:
                claim = {"claimName": f"{name}-{view.name}"}
                yield {"name": name, "persistentVolumeClaim": claim}
