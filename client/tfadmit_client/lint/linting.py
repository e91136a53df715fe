"""Judging objects in files by the webhook's rules, each finding with its place in the file.

Pure: manifests in, findings out. The rules and their sentences are the webhook's (`policy`); how
findings are written is `output`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfadmit_client.expand import expansion
from tfadmit_client.files import manifest
from tfadmit_client.files.yamltext import Position
from tfadmit_webhook import policy, ratchet, raw, trainjob
from tfadmit_webhook.settings import Settings

GROUP = "trainer.kubeflow.org"
_NONE: Mapping[str, Mapping[str, str]] = {}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A violation and where it stands."""

    manifest: manifest.Manifest
    violation: policy.Violation
    position: Position


@dataclass(frozen=True, kw_only=True)
class Result:
    """What judging some files gave."""

    findings: tuple[Finding, ...]
    judged: int
    """How many objects have rules."""

    skipped: int
    """How many have none: other kinds, other frameworks, and TrainJobs without their runtime."""

    @property
    def denied(self) -> bool:
        """Whether the webhook would refuse one of the objects."""
        return any(item.violation.level == "deny" for item in self.findings)


def lint(
    manifests: Sequence[manifest.Manifest],
    *,
    settings: Settings,
    namespaces: Mapping[str, Mapping[str, str]] = _NONE,
) -> Result:
    """Judge every object that has rules; findings come in the order of files and lines.

    `namespaces` has the labels of those that are known; in others the strictest level that the
    settings could give a rule is taken.
    """
    runtimes = {expansion.key(item): item.content for item in manifests if _is_ours(item)}
    judged = [item for item in manifests if _is_ours(item) or _runtime(item, runtimes)]
    findings = [
        Finding(
            manifest=item,
            violation=violation,
            position=item.locate(violation.finding.path),
        )
        for item in judged
        for violation in _violations(item, runtimes, settings, namespaces.get(item.namespace))
    ]
    order = {item.file: index for index, item in reversed(list(enumerate(manifests)))}
    return Result(
        findings=tuple(
            sorted(
                findings,
                key=lambda item: (
                    order[item.manifest.file],
                    item.position.line,
                    item.position.column,
                    item.violation.rule.id,
                ),
            )
        ),
        judged=len(judged),
        skipped=len(manifests) - len(judged),
    )


def _is_ours(item: manifest.Manifest) -> bool:
    return expansion.is_runtime(item) and ratchet.is_labelled(item.content)


def _runtime(item: manifest.Manifest, runtimes: expansion.Runtimes) -> raw.JsonObject | None:
    """Give the runtime of a TrainJob, when it is among the files and TensorFlow's."""
    if (item.group, item.kind) != (GROUP, "TrainJob"):
        return None
    reference = trainjob.reference(item.content, namespace=item.namespace)
    if reference is None:
        return None
    return runtimes.get((reference.kind, reference.namespace, reference.name))


def _violations(
    item: manifest.Manifest,
    runtimes: expansion.Runtimes,
    settings: Settings,
    labels: Mapping[str, str] | None,
) -> tuple[policy.Violation, ...]:
    if on := _runtime(item, runtimes):
        return policy.judge_trainjob(
            item.content, on=on, settings=settings, namespace=item.namespace, labels=labels
        )
    # As the webhook sees it: the label has reached the pod templates. Paths stay the same.
    content = expansion.labelled(item.content)
    return policy.judge_runtime(content, settings=settings, namespace=item.namespace, labels=labels)
