"""What the rules of the webhook say of a TrainJob before it is sent. Pure.

The same code that the cluster runs, so that a refusal comes in a moment and in the words of the
options. What only the site's own settings refuse, the API server says in its dry run.
"""

from dataclasses import dataclass

from tfadmit_client.submit import flags
from tfadmit_client.submit.objects import Submission
from tfadmit_client.submit.plan import Plan
from tfadmit_webhook import policy, raw
from tfadmit_webhook.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Sentences about a TrainJob."""

    refused: tuple[str, ...]
    warnings: tuple[str, ...]


def judge(made: Submission, plan: Plan, *, namespace: str) -> Judgement:
    """Judge a TrainJob on its runtime."""
    violations = policy.judge_trainjob(
        made.trainjob, on=plan.runtime.content, settings=Settings(), namespace=namespace
    )
    said = {
        # Once: a patch goes into the pods of each role.
        level: tuple(
            dict.fromkeys(
                _sentence(item, made.trainjob) for item in violations if item.level == level
            )
        )
        for level in ("deny", "warn")
    }
    return Judgement(refused=said["deny"], warnings=said["warn"])


def _sentence(violation: policy.Violation, trainjob: raw.JsonObject) -> str:
    finding = violation.finding
    where = flags.of(raw.dotted(finding.path), trainjob)
    why = finding.why or violation.rule.why
    return f"{where} {finding.what}: {why}; {finding.fix} ({violation.rule.id})"
