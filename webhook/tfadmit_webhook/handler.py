"""Admission: from a request to a decision, one function per webhook path.

The pipeline of the pure parts. What is asked of the outside stands in `lookup`; nothing here knows
HTTP, threads or the API client.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tfadmit_trainer import contract
from tfadmit_webhook import (
    decision,
    facts,
    jobset,
    jobset_status,
    lookup,
    mutate,
    policy,
    ratchet,
    raw,
    review,
    runtime,
    trainjob,
    workload,
)
from tfadmit_webhook.decision import Decision, Reason, Refusal


class Handler(Protocol):
    """The shape of an admission function."""

    def __call__(self, request: review.Request, context: lookup.Context) -> Decision:
        """Decide on one request."""


def mutate_pod(request: review.Request, context: lookup.Context) -> Decision:
    """Make a pod the TensorFlow task that it is."""
    if request.operation != "CREATE" or request.subresource:
        return decision.allow(Reason.OTHER_OPERATION)
    view = workload.pod(request.object, namespace=request.namespace)
    if reason := _left_alone(view):
        return decision.allow(reason)
    warnings = _warnings(view)
    found = lookup.task(view, context)
    if isinstance(found, Refusal):
        return decision.refuse(found, warnings=warnings)
    task, source = found
    operations = mutate.pod(view, task, source=source, settings=context.settings)
    if isinstance(operations, Refusal):
        return decision.refuse(operations, warnings=warnings)
    return decision.patched(operations, warnings=warnings)


def mutate_jobset(request: review.Request, context: lookup.Context) -> Decision:  # noqa: ARG001 - a Handler
    """Give a JobSet the roles that its users asked for."""
    if reason := _not_judged(request):
        return decision.allow(reason)
    if request.operation == "CREATE":
        return _shaped(jobset.created(request.object))
    wish = jobset.wish(request.object)
    unchanged = raw.mapping(request.old.get("spec")) == raw.mapping(request.object.get("spec"))
    is_shaped = jobset_status.is_shaped(request.old)
    if unchanged and wish == jobset.wish(request.old):
        # Without its mark the next change would not know that the JobSet was shaped.
        if is_shaped and (mark := jobset_status.kept(request.object, request.old)):
            return decision.patched(mark)
        return decision.allow(Reason.SPEC_UNCHANGED)
    if not is_shaped:
        warning = (
            f"annotation {contract.REPLICAS_ANNOTATION} has no effect: this JobSet was created "
            "without it, and JobSet keeps the numbers that it was created with"
        )
        return decision.allow(Reason.NOT_SHAPED, warnings=[warning] if wish else [])
    return _shaped(jobset.updated(request.object, request.old))


def mutate_runtime(request: review.Request, context: lookup.Context) -> Decision:  # noqa: ARG001 - a Handler
    """Copy a runtime's framework label to where its pods get it from."""
    if reason := _not_judged(request):
        return decision.allow(reason, warnings=_left_over(request.object))
    return decision.patched(mutate.runtime(request.object))


def validate_runtime(request: review.Request, context: lookup.Context) -> Decision:
    """Refuse a runtime whose pods could not train together."""
    if reason := _not_judged(request):
        return decision.allow(reason)
    if request.operation == "UPDATE" and ratchet.unchanged(request.old, request.object):
        return decision.allow(Reason.SPEC_UNCHANGED)
    labels, notes = _labels(request, context)
    violations = policy.judge_runtime(
        request.object, settings=context.settings, namespace=request.namespace, labels=labels
    )
    return _judged(violations, notes=notes)


def validate_trainjob(request: review.Request, context: lookup.Context) -> Decision:
    """Refuse a TrainJob whose pods could not be made; warn of what would not train.

    All TrainJobs of the cluster come here, so whatever is not known lets them pass.
    """
    if reason := _passes(request):
        return decision.allow(reason)
    if request.operation == "UPDATE" and ratchet.unchanged_trainjob(request.old, request.object):
        return decision.allow(Reason.SPEC_UNCHANGED)
    reference = trainjob.reference(request.object, namespace=request.namespace)
    if reference is None:
        return decision.allow(Reason.NOT_OURS)
    try:
        on = lookup.runtime(reference, context)
    except facts.LookupFailedError as error:
        warning = f"tfadmit did not check this TrainJob: {error}"
        return decision.allow(Reason.UNJUDGED, warnings=[warning])
    if on is not None and not ratchet.is_labelled(on):
        return decision.allow(Reason.NOT_OURS)
    labels, notes = _labels(request, context)
    violations = policy.judge_trainjob(
        request.object,
        on=on,
        settings=context.settings,
        namespace=request.namespace,
        labels=labels,
    )
    return _judged(violations, notes=notes)


HANDLERS: dict[str, Handler] = {
    "/mutate/pods": mutate_pod,
    "/mutate/jobsets": mutate_jobset,
    "/mutate/runtimes": mutate_runtime,
    "/validate/runtimes": validate_runtime,
    "/validate/trainjobs": validate_trainjob,
}


def _shaped(found: Sequence[decision.Operation] | Refusal) -> Decision:
    return decision.refuse(found) if isinstance(found, Refusal) else decision.patched(found)


def _left_over(content: raw.JsonObject) -> list[str]:
    """Tell of labels that stay in pod templates after the runtime's own was taken away."""
    if ratchet.is_labelled(content):
        return []
    jobs = [job.name for job in runtime.jobs(content) if job.pod.is_tensorflow]
    return [
        f"the pod template of {name!r} still has the label {contract.FRAMEWORK_LABEL}: its pods "
        "are TensorFlow tasks until it is removed there too"
        for name in jobs
    ]


def _left_alone(view: workload.Pod) -> Reason | None:
    if not view.is_tensorflow:
        return Reason.NOT_OURS
    if contract.MIRROR_ANNOTATION in view.annotations:
        return Reason.MIRROR_POD
    if view.annotations.get(contract.INJECT_ANNOTATION) == "false":
        return Reason.OPTED_OUT
    return None


def _warnings(view: workload.Pod) -> list[str]:
    """Tell of what looks like a wish and has no effect."""
    stated = view.annotations.get(contract.INJECT_ANNOTATION, "true")
    name = contract.INJECT_ANNOTATION
    warnings = [] if stated == "true" else [f'{name} is {stated!r}; only "false" leaves a pod out']
    for kind, names, known in (
        ("annotation", view.annotations, contract.OWN_ANNOTATIONS),
        ("label", view.labels, contract.OWN_LABELS),
    ):
        for word in sorted(names):
            if word == contract.REPLICAS_ANNOTATION:
                warnings.append(f"{kind} {word} has no effect on a pod: it belongs on the JobSet")
            elif word.startswith(contract.PREFIX) and word not in known:
                near = difflib.get_close_matches(word, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                warnings.append(f"{kind} {word} means nothing to tfadmit{hint}")
    return warnings


def _passes(request: review.Request) -> Reason | None:
    """Say why a request is nothing that policies look at, whatever object it is about."""
    if request.operation not in ("CREATE", "UPDATE") or request.subresource:
        return Reason.OTHER_OPERATION
    metadata = raw.mapping(request.object.get("metadata"))
    if metadata.get("deletionTimestamp"):
        return Reason.BEING_DELETED
    return None


def _not_judged(request: review.Request) -> Reason | None:
    if reason := _passes(request):
        return reason
    # The selector of the configuration also matches when only the old object has the label.
    if not ratchet.is_labelled(request.object):
        return Reason.NOT_OURS
    return None


def _labels(
    request: review.Request, context: lookup.Context
) -> tuple[Mapping[str, str] | None, tuple[str, ...]]:
    """Give the labels of the namespace where levels depend on them, and what to say if unknown."""
    if not policy.depends_on_namespace(request.object, context.settings):
        return {}, ()
    try:
        return lookup.namespace_labels(request.namespace, context) or {}, ()
    except facts.LookupFailedError as error:
        words = "tfadmit took the strictest level of each rule, as overrides depend on labels"
        return None, (f"{words}: {error}",)


def _judged(violations: tuple[policy.Violation, ...], *, notes: Sequence[str]) -> Decision:
    denied = [violation for violation in violations if violation.level == "deny"]
    warned = [item.within(review.MAX_WARNING) for item in violations if item.level == "warn"]
    warnings = (*notes, *warned) if violations else ()
    audit = (
        *_named("violations", [item for item in violations if not item.exempted]),
        *_named("exempted", [item for item in violations if item.exempted]),
    )
    counted = tuple(
        (item.rule.id, "exempted" if item.exempted else item.level) for item in violations
    )
    if not denied:
        return Decision(
            allowed=True,
            reason=Reason.CONFORMS,
            warnings=warnings,
            audit=audit,
            violations=counted,
        )
    sentences = [violation.sentence for violation in denied]
    return Decision(
        allowed=False,
        reason=Reason.POLICY_VIOLATED,
        message="\n".join(sentences),
        code=403,
        warnings=warnings,
        audit=audit,
        violations=counted,
    )


def _named(key: str, violations: Sequence[policy.Violation]) -> Iterator[tuple[str, str]]:
    """Give an audit annotation with the rules of some violations, if there are any."""
    if violations:
        yield key, ",".join(item.rule.id for item in violations)
