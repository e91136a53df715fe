"""TFA013: limits that the Kubeflow SDK understands.

The SDK derives the devices of a runtime from the limits of its container `node`, and those of a
TrainJob from the limits of its pods. It looks for cpu, GPU, TPU or NPU; limits with none of these
(memory only, or a network device only), an empty `limits`, or several kinds of MIG make it fail to
list *all* runtimes of the cluster, or *all* TrainJobs of the namespace, for everybody. The limits
of a TrainJob (`resourcesPerNode`) are merged into those of the runtime.
"""

from collections.abc import Iterator, Mapping

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy import sdk
from tfadmit_webhook.policy.rule import Case, Finding, Rule

# In the order in which the SDK looks (kubeflow 0.5, get_container_devices).
_FIRST = ("nvidia.com/gpu", "google.com/tpu")
_MIG = "nvidia.com/mig-"
_LAST = ("huawei.com/Ascend910", "cpu")
_LIMITS: raw.Path = ("resources", "limits")
_TRAINJOB: raw.Path = ("spec", "trainer", "resourcesPerNode", "limits")


def check(case: Case) -> Iterator[Finding]:
    """Find limits from which the SDK cannot tell the device."""
    if case.subject == "trainjob":
        yield from _trainjob(case)
        return
    for job in case.jobs:
        names = sdk.READ.get(job.name, ())
        if job.step == runtime.TRAINER_STEP:
            names = ("node",)
        for container in job.pod.containers():
            limits = raw.at(container.content, _LIMITS)
            if container.name in names and isinstance(limits, dict):
                path = (*job.template_path, *container.path, *_LIMITS)
                yield from _unknown(limits, at=path)


def _trainjob(case: Case) -> Iterator[Finding]:
    stated = raw.mapping(raw.at(case.content, _TRAINJOB))
    # Without an mlPolicy Trainer does not apply them; empty ones do not reach the pods.
    if not stated or raw.at(case.on, ("spec", "mlPolicy")) is None:
        return
    step = next((job for job in case.jobs if job.step == runtime.TRAINER_STEP), None)
    if step is None or step.name not in sdk.READ:
        return
    for container in step.pod.containers():
        if container.name == "node":
            limits = raw.mapping(raw.at(container.content, _LIMITS))
            yield from _unknown({**limits, **stated}, at=_TRAINJOB)


def _unknown(limits: Mapping[str, object], *, at: raw.Path) -> Iterator[Finding]:
    if any(name in limits for name in _FIRST):
        return
    kinds = sorted(name for name in limits if name.startswith(_MIG))
    if len(kinds) > 1:
        yield Finding(path=at, what=f"has {' and '.join(kinds)}", fix="one kind of MIG")
    elif not kinds and not any(name in limits for name in _LAST):
        yield Finding(
            path=at,
            what=f"has only {', '.join(sorted(limits))}" if limits else "is empty",
            fix="add a limit of cpu or nvidia.com/gpu, or remove the limits",
        )


RULE = Rule(
    id="TFA013",
    name="sdk-limits",
    subjects=frozenset({"runtime", "trainjob"}),
    level="warn",
    why="the Kubeflow SDK then fails to list all runtimes, or all TrainJobs",
    check=check,
)
