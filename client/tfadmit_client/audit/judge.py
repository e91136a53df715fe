"""Judging one object of a live cluster by the webhook's rules.

Runtimes and TrainJobs are judged by `policy`, as at admission. A JobSet has no rules of its own:
its network section is judged by those of runtimes, and its roles, ports and names by
`cluster.plan`, which refuses its pods for the same reasons. Pure.
"""

import dataclasses
from collections.abc import Sequence

from tfadmit_client.audit.report import Finding
from tfadmit_client.expand import expansion
from tfadmit_trainer import contract
from tfadmit_webhook import cluster, facts, mutate, policy, raw
from tfadmit_webhook.decision import Refusal
from tfadmit_webhook.settings import Level, Settings

_TEMPLATE: raw.Path = ("spec", "template")
_NETWORK: raw.Path = ("spec", "template", "spec", "network")
# The subdomain is not among them: every JobSet has one, and its own.
_JOBSET_PATHS = ((*_NETWORK, "publishNotReadyAddresses"), (*_NETWORK, "enableDNSHostnames"))


def runtime(
    content: raw.JsonObject, *, settings: Settings, labels: policy.Labels, flags: str
) -> list[Finding]:
    """Judge a labelled runtime; `labels` are its namespace's, `flags` reach its cluster."""
    labelled = expansion.labelled(content)
    violations = policy.judge_runtime(labelled, settings=settings, labels=labels)
    return [*_violations(content, violations), *_uncopied(content, flags=flags)]


def trainjob(
    content: raw.JsonObject,
    *,
    on: raw.JsonObject | None,
    settings: Settings,
    labels: policy.Labels,
) -> list[Finding]:
    """Judge a TrainJob on its runtime, which is None if there is none."""
    violations = policy.judge_trainjob(content, on=on, settings=settings, labels=labels)
    return _violations(content, violations)


def jobset(
    content: raw.JsonObject, work: facts.Workload, *, settings: Settings, labels: policy.Labels
) -> list[Finding]:
    """Judge a JobSet, given also as the workload that its pods see."""
    as_runtime = {**content, "spec": {"template": {"spec": content.get("spec")}}}
    network = [
        dataclasses.replace(item, finding=_moved(item.finding))
        for item in policy.judge_runtime(as_runtime, settings=settings, labels=labels)
        if item.finding.path in _JOBSET_PATHS
    ]
    planned = cluster.plan(work, domain=settings.cluster_domain, default_port=settings.default_port)
    found = _violations(content, network)
    return [*found, _refused(content, planned)] if isinstance(planned, Refusal) else found


def _violations(content: raw.JsonObject, violations: Sequence[policy.Violation]) -> list[Finding]:
    return [
        _finding(
            content,
            rule=item.rule.id,
            level=item.level,
            path=item.finding.path,
            message=item.sentence,
        )
        for item in violations
    ]


def _uncopied(content: raw.JsonObject, *, flags: str) -> list[Finding]:
    """Tell of a runtime from before tfadmit: its pods do not have the label yet."""
    if not mutate.runtime(content):
        return []
    metadata = raw.mapping(content.get("metadata"))
    namespace, kind = raw.text(metadata.get("namespace")), raw.text(content.get("kind")).lower()
    option = f" -n {namespace}" if namespace else ""
    get = f"kubectl get {kind} {raw.text(metadata.get('name'))}{option}{flags} -o yaml"
    message = (
        f"label-not-copied {raw.dotted(_TEMPLATE)} has pod templates without the label "
        f"{contract.FRAMEWORK_LABEL}: the runtime was not changed since tfadmit is there, and its "
        f"pods get no cluster; fix: `{get} | kubectl replace{flags} -f -`"
    )
    rule = "label-not-copied"
    return [_finding(content, rule=rule, level="warn", path=_TEMPLATE, message=message)]


def _refused(content: raw.JsonObject, refusal: Refusal) -> Finding:
    rule, path = refusal.reason.value, ("spec",)
    said = refusal.message.partition(": ")[2]  # after the label of the JobSet
    message = f"{rule} its pods are refused: {said}"
    return _finding(content, rule=rule, level="deny", path=path, message=message)


def _finding(
    content: raw.JsonObject, *, rule: str, level: Level, path: raw.Path, message: str
) -> Finding:
    metadata = raw.mapping(content.get("metadata"))
    return Finding(
        kind=raw.text(content.get("kind")),
        namespace=raw.text(metadata.get("namespace")),
        name=raw.text(metadata.get("name")),
        rule=rule,
        level=level,
        path=raw.dotted(path),
        message=message,
    )


def _moved(finding: policy.Finding) -> policy.Finding:
    """Give a finding of a runtime's template the path that it has in a JobSet."""
    return dataclasses.replace(finding, path=finding.path[len(_TEMPLATE) :])
