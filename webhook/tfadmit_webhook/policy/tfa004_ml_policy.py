"""TFA004: a TensorFlow runtime has an mlPolicy, and that of no other framework.

A section torch, mpi, jax, xgboost or flux lets Trainer inject that framework's variables, commands
and jobs into the pods. Without any mlPolicy the Kubeflow SDK fails to list *all* runtimes of the
cluster, this one and the others.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "mlPolicy")
FRAMEWORKS = ("torch", "mpi", "jax", "xgboost", "flux")


def check(case: Case) -> Iterator[Finding]:
    """Find another framework's section, and the absence of any policy."""
    policy = raw.at(case.content, PATH)
    if policy is None:
        yield Finding(
            path=PATH,
            what="is missing",
            why="the Kubeflow SDK then cannot list any runtime of the cluster",
            fix="`mlPolicy: {numNodes: 1}` under spec",
            only_warn=True,
        )
    for framework in FRAMEWORKS:
        # An empty section counts: Trainer looks at its presence.
        if raw.mapping(policy).get(framework) is not None:
            yield Finding(path=(*PATH, framework), what="is set", fix="remove it, keep `numNodes`")


RULE = Rule(
    id="TFA004",
    name="ml-policy",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="Trainer would set up another framework in these pods",
    check=check,
)
