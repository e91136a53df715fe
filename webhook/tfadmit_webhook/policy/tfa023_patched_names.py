"""TFA023: the patches of a TrainJob name what its runtime has.

`runtimePatches` are merged into the runtime before Trainer checks them, so a replicated job or a
container that they misspell is there when Trainer looks: as a new one, without an image. The API
server refuses the JobSet or the Job that is made of it. The same is true of a mount whose volume is
neither in the runtime nor in the patches. The TrainJob was accepted then, and its status stays
empty.
"""

from collections.abc import Iterable, Iterator

from tfadmit_webhook import raw, runtime, trainjob
from tfadmit_webhook.policy.rule import Case, Finding, Rule, one_of

_CLAIMS: raw.Path = ("spec", "template", "spec", "volumeClaimPolicies")


def check(case: Case) -> Iterator[Finding]:
    """Find names in patches that lead nowhere."""
    if case.on is None:
        return
    jobs = {job.name: job for job in case.jobs}
    claims = set(_claims(case.on))
    patches = list(trainjob.patches(case.content))
    for patch in patches:
        for path, name in patch.jobs:
            job = jobs.get(name)
            if job is None:
                what = f"is {name!r}, which is no job of the runtime"
                yield Finding(path=path, what=what, fix=one_of(jobs))
            else:
                volumes = {*claims, *_volumes(job, patches)}
                yield from _containers(patch, job, volumes)


def _containers(patch: trainjob.Patch, job: runtime.Job, volumes: set[str]) -> Iterator[Finding]:
    for kind in ("containers", "initContainers"):
        known = {item.name for item in job.pod.containers() if item.path[1] == kind}
        for index, item in enumerate(raw.sequence(patch.spec.get(kind))):
            container = raw.mapping(item)
            path = (*patch.path, kind, index)
            if (name := raw.text(container.get("name"))) not in known:
                yield Finding(
                    path=(*path, "name"),
                    what=f"is {name!r}, and {job.name!r} has {_list(known)} there",
                    fix="the name of one of these; a container can only be added in the runtime",
                )
                continue
            for number, mount in enumerate(raw.sequence(container.get("volumeMounts"))):
                volume = raw.text(raw.mapping(mount).get("name"))
                if volume not in volumes:
                    yield Finding(
                        path=(*path, "volumeMounts", number, "name"),
                        what=f"is {volume!r}, and {job.name!r} has {_list(volumes)}",
                        fix=f"`name: {volume}` among the volumes of the patch",
                    )


def _volumes(job: runtime.Job, patches: Iterable[trainjob.Patch]) -> Iterator[str]:
    specs = [patch.spec for patch in patches if any(name == job.name for _, name in patch.jobs)]
    for spec in (job.pod.spec, *specs):
        for item in raw.sequence(spec.get("volumes")):
            yield raw.text(raw.mapping(item).get("name"))


def _claims(on: raw.JsonObject) -> Iterator[str]:
    """Give the volumes that JobSet adds to pods by itself."""
    for policy in raw.sequence(raw.at(on, _CLAIMS)):
        for template in raw.sequence(raw.mapping(policy).get("templates")):
            yield raw.text(raw.at(template, ("metadata", "name")))


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


RULE = Rule(
    id="TFA023",
    name="patched-names",
    subjects=frozenset({"trainjob"}),
    level="deny",
    why="Trainer accepts it, the API server refuses what is made of it, and nothing starts",
    check=check,
)
