"""From raw objects to TFJobs, or to everything that is wrong with them.

Follows `pkg/webhooks/tensorflow` of the training operator 1.9. What TensorFlow itself refuses (two
chiefs) is refused here too: it would never have trained. Pure.
"""

from collections.abc import Iterator, Mapping

from tfadmit_client.migrate import fields, pod_fields, tfjob
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_SINGLE: tuple[contract.Role, ...] = ("chief", "evaluator")
# What etcd takes in one request; no API server holds a larger object.
_MAX_BYTES = 1_572_864


def read(content: raw.JsonObject) -> tfjob.TFJob | tuple[fields.Fault, ...]:
    """View a TFJob, or say everything that is wrong with it."""
    if faults := tuple(_faults(content)):
        return faults
    found = [
        tfjob.Replica(
            key=key,
            type=tfjob.spelled(key),
            count=raw.count(raw.mapping(value).get("replicas"), default=1),
            content=raw.mapping(value),
        )
        for key, value in raw.mapping(raw.at(content, tfjob.SPECS)).items()
    ]
    order = list(tfjob.TYPES)
    found.sort(key=lambda item: order.index(item.type))
    return tfjob.TFJob(
        content=content,
        replicas=tuple(item for item in found if item.count),
        idle=tuple(item for item in found if not item.count),
    )


def _faults(content: raw.JsonObject) -> Iterator[fields.Fault]:
    if (size := fields.size(content)) > _MAX_BYTES:
        yield fields.Fault(
            path=(),
            message=f"it has {size:,} bytes as JSON, and no API server holds an object of more "
            f"than {_MAX_BYTES:,}: move data out of it, into a ConfigMap or a volume",
        )
        return
    yield from _name(content)
    yield from fields.wrong(content, _SPEC)
    specs = raw.at(content, tfjob.SPECS)
    if not isinstance(specs, dict) or not specs:
        yield fields.Fault(
            path=tfjob.SPECS,
            message="there are no replicas: write at least "
            "`tfReplicaSpecs: {Worker: {template: …}}`",
        )
        return
    for key, value in specs.items():
        yield from _replica(key, value)
    yield from _roles(specs)


def _name(content: raw.JsonObject) -> Iterator[fields.Fault]:
    metadata = raw.mapping(content.get("metadata"))
    name, prefix = metadata.get("name"), raw.text(metadata.get("generateName"))
    shown = name or prefix.rstrip("-")
    if not isinstance(shown, str) or not tfjob.is_name(shown):
        yield fields.Fault(
            path=("metadata", "name"),
            message=f"{shown!r} is no name of a TFJob: at most 63 small letters, digits and "
            "hyphens, the first one a letter",
        )
    namespace = metadata.get("namespace")
    if namespace is not None and not tfjob.is_namespace(namespace):
        yield fields.Fault(
            path=("metadata", "namespace"),
            message=f"{namespace!r} is no name of a namespace: at most 63 small letters, digits "
            "and hyphens",
        )
    yield from pod_fields.metadata(metadata, at=("metadata",))


def _replica(key: str, value: object) -> Iterator[fields.Fault]:
    path = (*tfjob.SPECS, key)
    if not tfjob.spelled(key):
        yield fields.Fault(
            path=path,
            message=f"{key!r} is no replica type of a TFJob: {', '.join(tfjob.TYPES)}, in any case",
        )
        return
    if not isinstance(value, dict):
        yield fields.Fault(path=path, message="is empty: write replicas and template")
        return
    yield from fields.wrong(value, _REPLICA, at=path)
    containers = raw.at(value, ("template", "spec", "containers"))
    where = (*path, "template", "spec", "containers")
    names = [raw.mapping(item).get("name") for item in raw.sequence(containers)]
    if names.count(tfjob.CONTAINER) != 1:
        yield fields.Fault(
            path=where,
            message=f"TFJob demands one container `{tfjob.CONTAINER}`, here are "
            f"{', '.join(map(str, names)) or 'none'}: name the one that trains `{tfjob.CONTAINER}`",
        )
    for index, item in enumerate(raw.sequence(containers)):
        yield from _container(item, at=(*where, index))
    yield from pod_fields.pod(raw.mapping(value.get("template")), at=(*path, "template"))


def _container(item: object, *, at: raw.Path) -> Iterator[fields.Fault]:
    content = raw.mapping(item)
    if not content.get("image"):
        yield fields.Fault(path=at, message="the container has no image, which TFJob demands")
    for index, port in enumerate(map(raw.mapping, raw.sequence(content.get("ports")))):
        number = port.get("containerPort")
        if port.get("name") == tfjob.PORT_NAME and not 0 < raw.count(number, default=0) < 65536:
            yield fields.Fault(
                path=(*at, "ports", index, "containerPort"),
                message=f"{number!r} is no port: every task's address ends in it, so it must be a "
                "number from 1 to 65535",
            )


def _roles(specs: raw.JsonObject) -> Iterator[fields.Fault]:
    """Find what neither the operator nor TensorFlow takes together."""
    counts: dict[contract.Role, int] = dict.fromkeys(contract.ROLES, 0)
    seen: dict[str, str] = {}
    for key, value in specs.items():
        if not (known := tfjob.spelled(key)):
            return
        same = "Chief" if known == "Master" else known
        if same in seen:
            yield fields.Fault(
                path=(*tfjob.SPECS, key),
                message=f"{key!r} and {seen[same]!r} are the same role: keep one",
            )
            return
        seen[same] = key
        counts[tfjob.TYPES[known]] += raw.count(raw.mapping(value).get("replicas"), default=1)
    for role in _SINGLE:
        if counts[role] > 1:
            yield fields.Fault(
                path=tfjob.SPECS,
                message=f"there are {counts[role]} {role} tasks, and TensorFlow takes one: "
                "write `replicas: 1`",
            )
    if not counts["chief"] and not counts["worker"]:
        yield fields.Fault(
            path=tfjob.SPECS,
            message="there is neither a Chief, a Master nor a Worker with replicas: nobody trains, "
            "and TFJob never ended; add one",
        )


_BOOLEAN = fields.Want(what="true or false", check=lambda value: isinstance(value, bool))
_COUNT = fields.Want(what="a number from 0", check=fields.is_count)
_TEXT = fields.Want(what="a text", check=lambda value: isinstance(value, str))
_MAPPING = fields.Want(what="a map", check=lambda value: isinstance(value, dict))
_REPLICA: Mapping[raw.Path, fields.Want] = {
    ("replicas",): _COUNT,
    ("restartPolicy",): fields.one_of("", "Never", "OnFailure", "Always", "ExitCode"),
    ("template",): _MAPPING,
    ("template", "spec"): _MAPPING,
    ("template", "metadata"): _MAPPING,
}
_SPEC: Mapping[raw.Path, fields.Want] = {
    ("spec",): _MAPPING,
    ("spec", "successPolicy"): fields.one_of("", "AllWorkers"),
    ("spec", "enableDynamicWorker"): _BOOLEAN,
    tfjob.POLICY: _MAPPING,
    (*tfjob.POLICY, "cleanPodPolicy"): fields.one_of("", "None", "Running", "All"),
    (*tfjob.POLICY, "ttlSecondsAfterFinished"): _COUNT,
    (*tfjob.POLICY, "activeDeadlineSeconds"): fields.Want(
        what="a number from 1", check=lambda value: raw.count(value, default=0) > 0
    ),
    (*tfjob.POLICY, "backoffLimit"): _COUNT,
    (*tfjob.POLICY, "suspend"): _BOOLEAN,
    (*tfjob.POLICY, "managedBy"): fields.one_of(
        "", "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"
    ),
    (*tfjob.POLICY, "schedulingPolicy"): _MAPPING,
    (*tfjob.POLICY, "schedulingPolicy", "minAvailable"): _COUNT,
    (*tfjob.POLICY, "schedulingPolicy", "queue"): _TEXT,
    (*tfjob.POLICY, "schedulingPolicy", "priorityClass"): _TEXT,
    (*tfjob.POLICY, "schedulingPolicy", "minResources"): _MAPPING,
    (*tfjob.POLICY, "schedulingPolicy", "scheduleTimeoutSeconds"): _COUNT,
}
