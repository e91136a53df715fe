"""What the webhook will say to the output: the rules of `tfadmit lint` over it, told in the report.

Pure. A finding that would refuse the output counts as not translated.
"""

from tfadmit_client.expand import expansion
from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate.translate import Translation
from tfadmit_webhook import policy, raw
from tfadmit_webhook.settings import Settings

# Where the command has a better answer than the line that fixes it.
_ADVICE = {
    "TFA008": "--gang-restart starts all tasks again together; or leave it, if single tasks may "
    "come back",
    "TFA014": "{fix}: --name NAME",
}


def judge(made: Translation, *, settings: Settings, namespace: str) -> tuple[book.Entry, ...]:
    """Give an entry for each finding."""
    labelled = expansion.labelled(made.runtime)
    found = policy.judge_runtime(labelled, settings=settings, namespace=namespace)
    on_job = policy.judge_trainjob(
        made.trainjob, on=labelled, settings=settings, namespace=namespace
    )
    return (
        *(_entry(item, "TrainingRuntime") for item in found if not item.exempted),
        *(_entry(item, "TrainJob") for item in on_job if not item.exempted),
    )


def _entry(item: policy.Violation, where: book.Object) -> book.Entry:
    finding, rule = item.finding, item.rule
    return book.Entry(
        verdict="not" if item.level == "deny" else "nearly",
        path=(),
        what=f"{rule.id}: {_leaf(finding.path)} {finding.what}: {rule.why}",
        advice=_ADVICE.get(rule.id, "{fix}").format(fix=finding.fix),
        target=book.Target(object=where, path=finding.path),
        refuses=item.level == "deny",
    )


def _leaf(path: raw.Path) -> str:
    """Give the last field of a path, with what follows it."""
    fields = [index for index, step in enumerate(path) if isinstance(step, str)]
    return raw.dotted(path[fields[-1] :]) if fields else raw.dotted(path)
