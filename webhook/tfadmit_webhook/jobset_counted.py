"""Who has counted the pods before the webhook sees the JobSet, and from the runtime alone.

Pure. Other numbers than those are refused, with the way that works: numbers in the runtime.
"""

from collections.abc import Sequence

from tfadmit_webhook import jobset_replicas, runtime
from tfadmit_webhook.jobset_replicas import Fault, Sizes

_IN_THE_RUNTIME = (
    "state the numbers as `parallelism` of the runtime's replicated jobs (in a TrainingRuntime of "
    "your namespace) and remove the annotation"
)


def by_pod_group(jobs: Sequence[runtime.Job], found: Sizes, *, text: str) -> Fault | None:
    """Say why the jobs of a gang, initializers included, cannot have these sizes.

    Trainer computes the minMember of its PodGroup from the runtime, before anybody sees the JobSet:
    the sum of completions, whatever the replicas.
    """
    left = jobset_replicas.resized(jobs, found)
    counted = sum(job.group.completions for job in jobs)
    coming = sum(job.group.size for job in left)
    if coming == counted or left == tuple(jobs):
        return None
    return Fault(
        text=text,
        is_fixed=True,
        why=(
            f"it makes {coming} pods, but Trainer makes a PodGroup of {counted} from the runtime, "
            "and a gang starts with exactly as many"
        ),
        fix=f"{_IN_THE_RUNTIME}, or use a runtime without podGroupPolicy",
    )


def by_kueue(jobs: Sequence[runtime.Job], found: Sizes, *, text: str) -> Fault | None:
    """Say why a TrainJob in a queue of Kueue cannot have these sizes.

    Kueue's integration of TrainJob expands the runtime by itself (`getChildJobSet` in its
    `pkg/controller/jobs/trainjob`) and never looks at the JobSet: quota, topology and readiness
    would all be for other pods.
    """
    if jobset_replicas.resized(jobs, found) == tuple(jobs):
        return None
    return Fault(
        text=text,
        is_fixed=True,
        why="Kueue admits a TrainJob by the numbers of its runtime, and other pods would come",
        fix=_IN_THE_RUNTIME,
    )
