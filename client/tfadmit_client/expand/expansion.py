"""Which of the objects in files make pods, and by which steps.

Pure. Knows the kinds and how objects refer to each other, and where tfadmit's own changes come in;
each step itself stands in a module of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfadmit_client import fault
from tfadmit_client.expand import apply, job, jobset, shape, trainer, values
from tfadmit_client.expand.remark import Remark
from tfadmit_client.files.manifest import Manifest
from tfadmit_webhook import facts, mutate, raw, workload

_TRAINER, _JOBSET, _BATCH = "trainer.kubeflow.org", "jobset.x-k8s.io", "batch"
_RUNTIMES = ((_TRAINER, "ClusterTrainingRuntime"), (_TRAINER, "TrainingRuntime"))
_KINDS = ((_TRAINER, "TrainJob"), (_JOBSET, "JobSet"), (_BATCH, "Job"), ("", "Pod"))

# As the namespaceSelector in deploy/base/webhooks.yaml has them.
EXCLUDED = ("kube-system", "kube-node-lease", "tfadmit-system")

Key = tuple[str, str, str]
Runtimes = Mapping[Key, raw.JsonObject]


@dataclass(kw_only=True)
class Source:
    """An object that makes pods."""

    manifest: Manifest
    runtime: Key | None = None
    remarks: list[Remark] = field(default_factory=list)
    jobset: raw.JsonObject | None = None
    job: raw.JsonObject | None = None
    pods: Sequence[raw.JsonObject] = ()
    workload: facts.Workload | None = None
    """What a look-up of the object would answer."""

    @property
    def runtime_label(self) -> str:
        """Kind and name of the runtime for people; empty without one."""
        return f"{self.runtime[0]} {self.runtime[-1]}" if self.runtime else ""

    def jobs(self) -> Iterator[raw.JsonObject]:
        """Give the Jobs whose pods are to be shown, with their defaults."""
        if self.job is not None:
            yield self.job
        if self.jobset is not None:
            namespace = self.manifest.namespace
            yield from (
                job.defaulted(item, namespace=namespace) for item in jobset.jobs(self.jobset)
            )


def is_runtime(item: Manifest) -> bool:
    """Whether the object is a runtime of Trainer."""
    return (item.group, item.kind) in _RUNTIMES


def key(item: Manifest) -> Key:
    """Give that by which TrainJobs refer to a runtime."""
    return item.kind, "" if item.is_cluster_wide else item.namespace, item.name


def labelled(runtime: raw.JsonObject) -> raw.JsonObject:
    """Give a runtime with the labels that tfadmit copies to its pods."""
    return apply.apply(runtime, mutate.runtime(runtime))


def passed_over(item: Manifest, everything: Iterable[Manifest]) -> str:
    """Say why an object is not shown by itself; empty when it is."""
    if (item.group, item.kind) not in _KINDS:
        return "makes no pods that tfadmit looks at"
    for owner in raw.sequence(raw.at(item.content, ("metadata", "ownerReferences"))):
        view = raw.mapping(owner)
        for other in everything:
            same = (other.kind, other.name) == (view.get("kind"), view.get("name"))
            if view.get("controller") is True and same and other.namespace == item.namespace:
                return f"shown as part of {other.label}"
    return ""


def source(item: Manifest, runtimes: Runtimes) -> Source:
    """Expand an object down to its Jobs.

    Raises:
        ClientError: it has no name, or its runtime is not there.
    """
    content = _named(item)
    if item.kind == "TrainJob":
        return _trainjob(item, content, runtimes)
    if item.kind == "JobSet":
        return _with_jobset(Source(manifest=item), content)
    if item.kind == "Job":
        return _job(item, content)
    return _pod(item, content)


def _named(item: Manifest) -> raw.JsonObject:
    """Give the content with the name that the API server would have made for it."""
    metadata = raw.mapping(item.content.get("metadata"))
    prefix = raw.text(metadata.get("generateName"))
    if item.name or item.kind == "Pod":
        return item.content
    if prefix:
        return {**item.content, "metadata": {**metadata, "name": f"{prefix}xxxxx"}}
    raise fault.ClientError(
        f"{item.source}: this {item.kind} has no name, and its pods are named after it: "
        "write metadata.name"
    )


def _trainjob(item: Manifest, content: raw.JsonObject, runtimes: Runtimes) -> Source:
    reference = raw.mapping(raw.at(content, ("spec", "runtimeRef")))
    kind = raw.text(reference.get("kind")) or "ClusterTrainingRuntime"
    name = raw.text(reference.get("name"))
    if not name:
        raise fault.ClientError(
            f"{item.source}: {item.label} names no runtime: write spec.runtimeRef"
        )
    namespace = "" if kind == "ClusterTrainingRuntime" else item.namespace
    runtime = runtimes.get((kind, namespace, name))
    if runtime is None:
        raise fault.ClientError(_missing(item, kind, name, namespace=namespace))
    expanded = trainer.jobset(content, runtime, namespace=item.namespace)
    found = Source(manifest=item, runtime=(kind, namespace, name), remarks=expanded.remarks)
    return _with_jobset(found, expanded.jobset)


def _missing(item: Manifest, kind: str, name: str, *, namespace: str) -> str:
    where = f" -n {namespace}" if namespace else ""
    path = item.source.rpartition(":")[0]
    return (
        f"{item.source}: {item.label} runs on {kind} {name}, which is in none of the files: add "
        f"its file with -f, or take it from the cluster:\n"
        f"  kubectl get {kind.lower()} {name}{where} -o yaml | tfadmit preview -f {path} -f -"
    )


def _with_jobset(found: Source, content: raw.JsonObject) -> Source:
    namespace = found.manifest.namespace
    if namespace not in EXCLUDED:
        shaped = shape.jobset(content)
        found.remarks += shaped.remarks
        if shaped.jobset is None:
            return found
        content = shaped.jobset
    found.jobset = jobset.defaulted(content, namespace=namespace)
    found.workload = workload.jobset(found.jobset)
    found.remarks += jobset.remarks(found.jobset)
    found.remarks += _suspended(found.jobset)
    firsts = (item for item in found.jobs() if _is_first(item))
    found.remarks += [note for item in firsts for note in job.remarks(item)]
    return found


def _is_first(item: raw.JsonObject) -> bool:
    """Whether a Job is the first of its replicated job; the others have the same to be said."""
    labels = raw.mapping(raw.at(item, ("metadata", "labels")))
    return labels.get("jobset.sigs.k8s.io/job-index") == "0"


def _job(item: Manifest, content: raw.JsonObject) -> Source:
    defaulted = job.defaulted(content, namespace=item.namespace)
    return Source(
        manifest=item,
        job=defaulted,
        workload=workload.job(defaulted),
        remarks=[*_suspended(defaulted), *job.remarks(defaulted)],
    )


def _pod(item: Manifest, content: raw.JsonObject) -> Source:
    pod = {
        **content,
        "metadata": {**raw.mapping(content.get("metadata")), "namespace": item.namespace},
        "spec": values.with_quantities(raw.mapping(content.get("spec"))),
    }
    return Source(manifest=item, pods=[pod], remarks=list(values.remarks(pod)))


def _suspended(content: raw.JsonObject) -> Iterator[Remark]:
    if raw.at(content, ("spec", "suspend")) is True:
        yield Remark(text="suspended: the pods are made when it is resumed")
