"""TFA025: the numbers that a TrainJob asks of its roles can be had.

The annotation `tfadmit.dev/replicas` of the JobSet sizes the roles that `numNodes` does not. The
webhook refuses the JobSet when it cannot follow; the TrainJob was accepted then: it stays, nothing
starts, and only an event says why. Under a podGroupPolicy the number of pods is Trainer's, which
makes the PodGroup from the runtime; and in a queue it is Kueue's, which admits a TrainJob by its
runtime. Annotations of the TrainJob itself reach no JobSet.
"""

from collections.abc import Iterator, Sequence

from tfadmit_trainer import contract
from tfadmit_webhook import jobset_counted, jobset_replicas, raw, runtime, trainjob
from tfadmit_webhook.policy.rule import Case, Finding, Rule

_OWN_PATH: raw.Path = ("metadata", "annotations", contract.REPLICAS_ANNOTATION)


def check(case: Case) -> Iterator[Finding]:
    """Find numbers that no JobSet can be given, and numbers that reach none."""
    if raw.at(case.content, _OWN_PATH) is not None:
        yield Finding(
            path=_OWN_PATH,
            what="has no effect: Trainer copies no annotation of a TrainJob",
            fix=f"write it in spec.runtimePatches[0].{raw.dotted(trainjob.PATCH_ANNOTATIONS)}",
            only_warn=True,
        )
    if case.on is None:
        return
    text, path = trainjob.replicas(case.content, case.on)
    found = trainjob.trainers_jobs(case.content, case.on)
    sizes = trainjob.roles(found, text)
    fault = sizes if isinstance(sizes, trainjob.Fault) else _fixed(case, found, sizes, text)
    if fault:
        where = "names a runtime whose annotation " if path == trainjob.REFERENCE_PATH else ""
        name = f"{contract.REPLICAS_ANNOTATION} " if where else ""
        yield Finding(path=path, what=f"{where}{name}{fault.what}", fix=fault.fix)


def _fixed(
    case: Case, found: Sequence[runtime.Job], sizes: jobset_replicas.Sizes, text: str
) -> trainjob.Fault | None:
    if runtime.is_gang(raw.mapping(case.on)):
        return jobset_counted.by_pod_group(found, sizes, text=text)
    if trainjob.queue(case.content):
        return jobset_counted.by_kueue(found, sizes, text=text)
    return None


RULE = Rule(
    id="TFA025",
    name="replicas",
    subjects=frozenset({"trainjob"}),
    level="deny",
    why="no JobSet can be given these numbers, so nothing would start",
    check=check,
)
