"""What a cluster with tfadmit would make of objects: runtimes and TrainJobs judged, pods admitted.

The pipeline of `tfadmit preview`. Pure: manifests in, a `Report` out. How objects expand stands in
`expand`, what admission decides in the webhook's handlers, how a report looks in `table`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tfadmit_client import fault
from tfadmit_client.expand import apply, expansion, job, remark
from tfadmit_client.files import manifest
from tfadmit_client.preview.report import Pod, Report, Runtime, Section
from tfadmit_trainer import contract
from tfadmit_webhook import facts, handler, lookup, policy, ratchet, raw, review, workload
from tfadmit_webhook.decision import Decision, Operation, Reason, Refusal, allow
from tfadmit_webhook.settings import Settings

EXCLUDED = expansion.EXCLUDED
_TASKS = (Reason.MUTATED, Reason.COMPLETE)
_NONE: Mapping[str, Mapping[str, str]] = {}
_SECONDS = 10.0  # as the webhook configuration has it; nothing here waits


class _Reader(facts.StaticReader):
    """The objects of the files; nobody knows the labels of other namespaces."""

    def namespace_labels(self, *, name: str, timeout: float) -> Mapping[str, str]:
        found = super().namespace_labels(name=name, timeout=timeout)
        if found is None:
            raise facts.LookupFailedError(
                f"no Namespace {name} is among the files, and --namespace-labels states none"
            )
        return found


def preview(
    manifests: Sequence[manifest.Manifest],
    *,
    settings: Settings,
    namespaces: Mapping[str, Mapping[str, str]] = _NONE,
) -> Report:
    """Show what would come of the objects; `namespaces` has the labels of those that are known.

    Raises:
        ClientError: something that they need is not among them.
    """
    context = _context((), settings, namespaces)
    runtimes = [_runtime(item, context) for item in manifests if expansion.is_runtime(item)]
    contents = {expansion.key(item.manifest): item.content for item in runtimes}
    sources, others, faults = _sources(manifests, contents)
    if faults:
        raise fault.ClientError("\n".join(faults))
    workloads = (item.workload for item in sources if item.workload)
    context = _context(workloads, settings, namespaces)
    _mark_waiting(sources, runtimes)
    _mark_judged(sources, contents, settings, namespaces)
    sections = [_section(item, context) for item in sources]
    return Report(runtimes=tuple(runtimes), sections=tuple(sections), others=tuple(others))


def _mark_waiting(sources: Iterable[expansion.Source], runtimes: Iterable[Runtime]) -> None:
    """Say of which objects nothing would be made, because their runtime is refused."""
    refused = {expansion.key(item.manifest) for item in runtimes if not item.decision.allowed}
    for item in sources:
        if item.runtime in refused:
            text = f"{item.runtime_label} is refused: none of this is made until it is mended"
            item.remarks.append(remark.Remark(text=text))


def _mark_judged(
    sources: Iterable[expansion.Source],
    runtimes: expansion.Runtimes,
    settings: Settings,
    namespaces: Mapping[str, Mapping[str, str]],
) -> None:
    """Say what the webhook would say to TrainJobs."""
    for item in sources:
        on = runtimes.get(item.runtime) if item.runtime else None
        if on is None or not ratchet.is_labelled(on) or item.manifest.namespace in EXCLUDED:
            continue
        namespace = item.manifest.namespace
        judged = policy.judge_trainjob(
            item.manifest.content,
            on=on,
            settings=settings,
            namespace=namespace,
            labels=namespaces.get(namespace),
        )
        item.remarks += [
            remark.Remark(text=violation.sentence, refused=violation.level == "deny")
            for violation in judged
            if not violation.exempted
        ]


def _context(
    workloads: Iterable[facts.Workload],
    settings: Settings,
    namespaces: Mapping[str, Mapping[str, str]],
) -> lookup.Context:
    reader = _Reader(workloads, namespaces=namespaces)
    return lookup.Context(reader=reader, settings=settings, remaining=lambda: _SECONDS)


def _sources(
    manifests: Sequence[manifest.Manifest], runtimes: expansion.Runtimes
) -> tuple[list[expansion.Source], list[str], list[str]]:
    """Expand what has pods; say why the rest has none, and what is missing."""
    sources: list[expansion.Source] = []
    others: list[str] = []
    faults: list[str] = []
    for item in manifests:
        if expansion.is_runtime(item):
            continue
        if reason := expansion.passed_over(item, manifests):
            others.append(f"{item.label}: {reason}")
            continue
        try:
            sources.append(expansion.source(item, runtimes))
        except fault.ClientError as error:
            faults.append(str(error))
    return sources, others, faults


def _runtime(item: manifest.Manifest, context: lookup.Context) -> Runtime:
    """Admit a runtime: the API server asks mutating webhooks first, then validating ones."""
    namespace = "" if item.is_cluster_wide else item.namespace
    request = _request(item.kind, item.content, namespace=namespace)
    changed = _patched(item, item.content, handler.mutate_runtime(request, context).patch)
    request = _request(item.kind, changed, namespace=namespace)
    decided = handler.validate_runtime(request, context)
    return Runtime(manifest=item, decision=decided, content=changed)


def _patched(
    item: manifest.Manifest, content: raw.JsonObject, patch: Sequence[Operation]
) -> raw.JsonObject:
    """Apply a patch; where it does not fit, the object is of no form that the API server takes."""
    try:
        return apply.apply(content, patch)
    except apply.MismatchError as error:
        raise fault.ClientError(
            f"{item.source}: {item.label} is not formed as the API wants it, at {error}"
        ) from error


def _section(item: expansion.Source, context: lookup.Context) -> Section:
    return Section(
        manifest=item.manifest,
        runtime=item.runtime_label,
        remarks=tuple(item.remarks),
        pods=tuple(_admitted(item, context)),
    )


def _pods(item: expansion.Source) -> Iterator[raw.JsonObject]:
    for content in item.jobs():
        yield from job.pods(content)
    yield from item.pods


def _admitted(item: expansion.Source, context: lookup.Context) -> Iterator[Pod]:
    namespace = item.manifest.namespace
    for content in _pods(item):
        if namespace in EXCLUDED:
            note = f"left as it is: tfadmit's webhooks leave out the namespace {namespace}"
            yield Pod(content=content, decision=allow(Reason.NOT_OURS), note=note)
            continue
        decided = handler.mutate_pod(_request("Pod", content, namespace=namespace), context)
        if decided.reason in _TASKS:
            yield _task(item.manifest, content, decided, context)
        else:
            yield Pod(content=content, decision=decided)


def _task(
    item: manifest.Manifest, content: raw.JsonObject, decided: Decision, context: lookup.Context
) -> Pod:
    admitted = _patched(item, content, decided.patch)
    view = workload.pod(admitted, namespace=item.namespace)
    found = lookup.task(view, context)
    # The same facts gave a task a moment ago, so there is no refusal here.
    address = "" if isinstance(found, Refusal) else _address(found[0])
    return Pod(
        content=admitted,
        decision=decided,
        patch=decided.patch,
        address=address,
        containers=tuple(target.name for target in workload.target_containers(view)),
    )


def _address(task: contract.Task) -> str:
    return task.cluster.address(task.role, task.index)


def _request(kind: str, content: raw.JsonObject, *, namespace: str) -> review.Request:
    return review.Request(
        uid="preview",
        operation="CREATE",
        kind=kind,
        name=raw.text(raw.at(content, ("metadata", "name"))),
        namespace=namespace,
        subresource="",
        user="",
        dry_run=True,
        object=content,
        old={},
    )
