"""TFA024: the Kubeflow SDK finds the containers that it reads.

The SDK takes the image of a runtime from the container `node` of Trainer's step; without an image
there it fails to list *all* runtimes of the cluster, for everybody, although a TrainJob could bring
one. In the pods of jobs called `node`, `launcher`, `dataset-initializer` and `model-initializer` it
looks for a container `node`, or one called like an initializer; without it a TrainJob on the
runtime makes it fail to list *all* TrainJobs of the namespace.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy import sdk
from tfadmit_webhook.policy.rule import Case, Finding, Rule


def check(case: Case) -> Iterator[Finding]:
    """Find containers that the SDK misses."""
    for job in case.jobs:
        containers = [item for item in job.pod.containers() if item.path[1] == "containers"]
        wanted = sdk.READ.get(job.name, ())
        if wanted and not any(item.name in wanted for item in containers):
            yield Finding(
                path=(*job.template_path, "spec", "containers"),
                what=f"have none called {' or '.join(wanted)}",
                fix=f"`name: {wanted[0]}`, or another name of the job",
            )
        if job.step != runtime.TRAINER_STEP:
            continue
        for item in containers:
            if item.name == "node" and not raw.text(item.content.get("image")):
                yield Finding(
                    path=(*job.template_path, *item.path, "image"),
                    what="is missing",
                    fix="the image that most TrainJobs take, they can name another",
                )


RULE = Rule(
    id="TFA024",
    name="sdk-containers",
    subjects=frozenset({"runtime"}),
    level="warn",
    why="the Kubeflow SDK then fails to list all runtimes, or all TrainJobs",
    check=check,
)
