"""From raw Pod, Job and JobSet objects to small typed views.

The only module that knows where in these objects a fact stands. It judges nothing: what is wrong
with a template is carried along as a problem, for whoever plans the cluster.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_webhook import facts, raw

# Without a role label the name of the replicated job decides. TFJob's `master` is TensorFlow 2's
# `chief`; TensorFlow refuses the old name.
_ROLE_BY_NAME: Mapping[str, contract.Role] = {
    **{role: role for role in contract.ROLES},
    "master": "chief",
}
_PREFERRED_CONTAINERS = ("node", "tensorflow")
_CONTAINER_LISTS = ("containers", "initContainers")


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container that gets the environment, and where it stands in the pod."""

    path: raw.Path
    content: raw.JsonObject

    @property
    def name(self) -> str:
        """The container's name."""
        return raw.text(self.content.get("name"))

    def env(self) -> Mapping[str, raw.JsonObject]:
        """Give the variables the container states, by name; of doubles the last, as in Linux."""
        return self._env

    @functools.cached_property
    def _env(self) -> Mapping[str, raw.JsonObject]:
        entries = (raw.mapping(entry) for entry in raw.sequence(self.content.get("env")))
        return {raw.text(entry.get("name")): entry for entry in entries}

    def resources(self) -> Iterator[str]:
        """Give the names of the resources the container requests or limits, unless zero."""
        resources = raw.mapping(self.content.get("resources"))
        for kind in ("requests", "limits"):
            for name, quantity in raw.mapping(resources.get(kind)).items():
                if str(quantity) != "0":
                    yield name


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod, or the pod template of a job: the two have the same metadata and spec."""

    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: raw.JsonObject
    content: raw.JsonObject

    @property
    def is_tensorflow(self) -> bool:
        """Whether the pod carries the framework label."""
        return self.labels.get(contract.FRAMEWORK_LABEL) == contract.FRAMEWORK

    @property
    def completion_index(self) -> int | None:
        """The index that the Job controller gave the pod, or None."""
        return _number(self.annotations.get(contract.COMPLETION_INDEX_ANNOTATION))

    @property
    def job_index(self) -> int | None:
        """The index that JobSet gave the pod's job within its replicated job, or None."""
        return _number(self.labels.get(contract.JOB_INDEX_LABEL))

    @property
    def owner_job(self) -> tuple[str, str] | None:
        """Name and uid of the Job that controls the pod, or None."""
        metadata = raw.mapping(self.content.get("metadata"))
        for item in raw.sequence(metadata.get("ownerReferences")):
            owner = raw.mapping(item)
            if owner.get("kind") == "Job" and owner.get("controller") is True:
                return raw.text(owner.get("name")), raw.text(owner.get("uid"))
        return None

    def containers(self) -> Iterator[Container]:
        """Give the regular and init containers; null entries keep their place and are passed by."""
        for kind in _CONTAINER_LISTS:
            for index, item in enumerate(raw.sequence(self.spec.get(kind))):
                if isinstance(item, dict):
                    yield Container(path=("spec", kind, index), content=item)


def pod(content: raw.JsonObject, *, namespace: str) -> Pod:
    """View a pod. The namespace is the request's: the object's own is often still empty."""
    metadata = raw.mapping(content.get("metadata"))
    return Pod(
        namespace=namespace,
        labels=raw.strings(metadata.get("labels")),
        annotations=raw.strings(metadata.get("annotations")),
        spec=raw.mapping(content.get("spec")),
        content=content,
    )


def named_containers(view: Pod) -> tuple[str, ...]:
    """Give the container names that the annotation states."""
    words = view.annotations.get(contract.CONTAINERS_ANNOTATION, "").split(",")
    return tuple(word.strip() for word in words if word.strip())


def target_containers(view: Pod) -> list[Container]:
    """Choose the containers that get the environment.

    Those of the annotation, else `node` (Trainer), else `tensorflow` (TFJob), else all regular
    ones. Init containers only when the annotation names them.
    """
    containers = list(view.containers())
    if names := frozenset(named_containers(view)):
        return [container for container in containers if container.name in names]
    regular = [container for container in containers if container.path[1] == "containers"]
    for name in _PREFERRED_CONTAINERS:
        if chosen := [container for container in regular if container.name == name]:
            return chosen
    return regular


def stated_role(view: Pod) -> tuple[contract.Role | None, str]:
    """Give the role that a pod itself states, None for none, and what is wrong with it."""
    name = view.labels.get(contract.REPLICATED_JOB_LABEL, "")
    label = view.labels.get(contract.ROLE_LABEL)
    if label is None and name not in _ROLE_BY_NAME:
        return None, ""
    role, problems = _role(name, label=label)
    return role, "; ".join(problems)


def address_problems(template: Pod) -> list[str]:
    """Say what is wrong with what a pod template says about its tasks' addresses."""
    return [*_port(template)[1], *_short_address(template)[1]]


def task_group(
    name: str, *, template: Pod, replicas: int, job_spec: raw.JsonObject
) -> facts.TaskGroup:
    """Reduce a job and its pod template to what its tasks' addresses follow from."""
    # The Job API: completions unset means parallelism, which defaults to 1.
    parallelism = raw.count(job_spec.get("parallelism"), default=1)
    role, role_problems = _role(name, label=template.labels.get(contract.ROLE_LABEL))
    port, port_problems = _port(template)
    short, address_problems = _short_address(template)
    problems = (*role_problems, *port_problems, *address_problems)
    return facts.TaskGroup(
        name=name,
        role=role,
        replicas=replicas,
        completions=raw.count(job_spec.get("completions"), default=parallelism),
        port=port,
        short_address=short,
        problems=tuple(f"{name}: {problem}" for problem in problems),
    )


def jobset(content: raw.JsonObject) -> facts.Workload:
    """View a JobSet; its groups are the replicated jobs whose pod template has the label."""
    metadata = raw.mapping(content.get("metadata"))
    spec = raw.mapping(content.get("spec"))
    name, namespace = raw.text(metadata.get("name")), raw.text(metadata.get("namespace"))
    subdomain = raw.text(raw.at(spec, ("network", "subdomain")))
    groups = (
        _replicated_job(raw.mapping(item), namespace=namespace)
        for item in raw.sequence(spec.get("replicatedJobs"))
    )
    return facts.Workload(
        kind="JobSet",
        namespace=namespace,
        name=name,
        uid=raw.text(metadata.get("uid")),
        subdomain=subdomain or name,
        suspended=spec.get("suspend") is True,
        groups=tuple(group for group in groups if group),
        has_names=raw.at(spec, ("network", "enableDNSHostnames")) is not False,
    )


def job(content: raw.JsonObject) -> facts.Workload:
    """View a plain Job as a workload of one group."""
    metadata = raw.mapping(content.get("metadata"))
    spec = raw.mapping(content.get("spec"))
    name, namespace = raw.text(metadata.get("name")), raw.text(metadata.get("namespace"))
    template = pod(raw.mapping(spec.get("template")), namespace=namespace)
    group = task_group(name, template=template, replicas=1, job_spec=spec)
    return facts.Workload(
        kind="Job",
        namespace=namespace,
        name=name,
        uid=raw.text(metadata.get("uid")),
        subdomain=raw.text(template.spec.get("subdomain")),
        suspended=spec.get("suspend") is True,
        groups=(group,) if template.is_tensorflow else (),
    )


def _replicated_job(item: raw.JsonObject, *, namespace: str) -> facts.TaskGroup | None:
    job_spec = raw.mapping(raw.at(item, ("template", "spec")))
    template = pod(raw.mapping(job_spec.get("template")), namespace=namespace)
    if not template.is_tensorflow:
        return None
    return task_group(
        raw.text(item.get("name")),
        template=template,
        replicas=raw.count(item.get("replicas"), default=1),
        job_spec=job_spec,
    )


def _role(name: str, *, label: str | None) -> tuple[contract.Role, list[str]]:
    by_name = _ROLE_BY_NAME.get(name, "worker")
    if label is None:
        return by_name, []
    if label in _ROLE_BY_NAME:
        return _ROLE_BY_NAME[label], []
    return by_name, [f"label {contract.ROLE_LABEL} is {label!r}: use {', '.join(contract.ROLES)}"]


def _port(template: Pod) -> tuple[int | None, list[str]]:
    """Find the rendezvous port: environment, annotation, named container port, in this order."""
    targets = target_containers(template)
    for container in targets:
        if entry := container.env().get(contract.PORT_ENV):
            return _port_number(entry.get("value"), source=f"env {contract.PORT_ENV}")
    if contract.PORT_ANNOTATION in template.annotations:
        value = template.annotations[contract.PORT_ANNOTATION]
        return _port_number(value, source=f"annotation {contract.PORT_ANNOTATION}")
    for container in targets:
        for item in raw.sequence(container.content.get("ports")):
            port = raw.mapping(item)
            if port.get("name") == contract.PORT_NAME:
                return _port_number(
                    port.get("containerPort"), source=f"container port {contract.PORT_NAME}"
                )
    return None, []


def _port_number(value: object, *, source: str) -> tuple[int | None, list[str]]:
    number = _number(str(value))
    if number is not None and 0 < number < 65536:
        return number, []
    problem = (
        f"{source} is {value!r}: every task's address ends in it, "
        "so it must be written as a number from 1 to 65535"
    )
    return None, [problem]


def _short_address(template: Pod) -> tuple[bool, list[str]]:
    form = template.annotations.get(contract.ADDRESS_ANNOTATION, "fqdn")
    if form in ("fqdn", "short"):
        return form == "short", []
    return False, [f"annotation {contract.ADDRESS_ANNOTATION} is {form!r}: use fqdn or short"]


def _number(word: str | None) -> int | None:
    # isdigit alone accepts digits of other scripts, which int() would take and Kubernetes not
    return int(word) if word and word.isascii() and word.isdigit() and len(word) < 10 else None
