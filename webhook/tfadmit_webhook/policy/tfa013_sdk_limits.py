"""TFA013: limits that the Kubeflow SDK understands.

The SDK derives the devices of a runtime from the limits of its container `node`. It looks for cpu,
GPU or TPU; limits with none of these (memory only, or a network device only) make it fail to list
*all* runtimes of the cluster, for everybody.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule

COUNTED = ("cpu", "nvidia.com/gpu", "google.com/tpu")


def check(case: Case) -> Iterator[Finding]:
    """Find limits without any of the resources that the SDK counts."""
    for job in case.jobs:
        if job.step != runtime.TRAINER_STEP:
            continue
        for container in job.pod.containers():
            limits = raw.mapping(raw.at(container.content, ("resources", "limits")))
            if container.name == "node" and limits and not any(name in limits for name in COUNTED):
                yield Finding(
                    path=(*job.template_path, *container.path, "resources", "limits"),
                    what=f"has only {', '.join(sorted(limits))}",
                    fix="add a limit of cpu or nvidia.com/gpu, or leave limits to the TrainJob",
                )


RULE = Rule(
    id="TFA013",
    name="sdk-limits",
    subjects=frozenset({"runtime"}),
    level="warn",
    why="the Kubeflow SDK then cannot list any runtime of the cluster",
    check=check,
)
