"""Judging objects in files by the webhook's rules, each finding with its place in the file.

Pure: manifests in, findings out. The rules and their sentences are the webhook's (`policy`); how
findings are written is `lint_output`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfadmit_client import apply, manifest
from tfadmit_client.yamltext import Position
from tfadmit_webhook import mutate, policy, ratchet
from tfadmit_webhook.settings import Settings

RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
GROUP = "trainer.kubeflow.org"


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
    """How many have none: other kinds, and runtimes of other frameworks."""

    @property
    def denied(self) -> bool:
        """Whether the webhook would refuse one of the objects."""
        return any(item.violation.level == "deny" for item in self.findings)


def lint(manifests: Sequence[manifest.Manifest], *, settings: Settings) -> Result:
    """Judge every object that has rules; findings come in the order of files and lines."""
    judged = [item for item in manifests if is_judged(item)]
    findings = [
        Finding(
            manifest=item,
            violation=violation,
            position=item.locate(violation.finding.path),
        )
        for item in judged
        for violation in _violations(item, settings)
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


def is_judged(item: manifest.Manifest) -> bool:
    """Whether there are rules for an object."""
    return item.group == GROUP and item.kind in RUNTIMES and ratchet.is_labelled(item.content)


def _violations(item: manifest.Manifest, settings: Settings) -> tuple[policy.Violation, ...]:
    # As the webhook sees it: the label has reached the pod templates. Paths stay the same.
    labelled = apply.apply(item.content, mutate.runtime(item.content))
    return policy.judge(labelled, subject="runtime", settings=settings)
