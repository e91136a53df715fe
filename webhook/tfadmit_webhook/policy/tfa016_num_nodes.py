"""TFA016: the number of nodes fits the roles of the runtime.

`numNodes` is the number of tasks of the runtime's trainer step. With 0 no worker starts, and the
step counts as done at once. With parameter servers and no chief, one of the workers coordinates:
with 1 nobody is left to compute. One worker beside a chief or an evaluator is fine, and so is one
alone. Where the trainer step is itself the chief or the evaluator, more than 1 makes several of
them, which TensorFlow does not know.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime, trainjob
from tfadmit_webhook.policy.rule import Case, Finding, Rule


def check(case: Case) -> Iterator[Finding]:
    """Find a number of nodes with which nothing is trained."""
    step = next((job for job in case.tasks if job.step == runtime.TRAINER_STEP), None)
    if step is None:
        return
    stated = raw.at(case.content, trainjob.NODES_PATH)
    nodes = stated if isinstance(stated, int) and stated < 0 else step.group.completions
    if nodes < 1:
        yield Finding(path=trainjob.NODES_PATH, what=f"is {nodes}", fix="`numNodes: 1` or more")
    elif step.group.role in ("chief", "evaluator") and nodes > 1:
        yield Finding(
            path=trainjob.NODES_PATH,
            what=f"is {nodes}, and the runtime's trainer step is the {step.group.role}",
            fix="`numNodes: 1`",
        )
    elif nodes == 1 and step.group.role == "worker" and _waits(case):
        yield Finding(
            path=trainjob.NODES_PATH,
            what="is 1, and the runtime has parameter servers and no chief",
            fix="`numNodes: 2` or more, or a runtime with a chief",
        )


def _waits(case: Case) -> bool:
    """Whether the only worker would have to coordinate as well."""
    servers, chiefs, workers = (
        runtime.tasks(case.jobs, role) for role in ("ps", "chief", "worker")
    )
    return servers > 0 and chiefs == 0 and workers == 1


RULE = Rule(
    id="TFA016",
    name="num-nodes",
    subjects=frozenset({"trainjob"}),
    level="warn",
    why="with that number of tasks nothing is trained",
    check=check,
)
