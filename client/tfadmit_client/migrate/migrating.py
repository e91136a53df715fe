"""TFJobs out of manifests and of a live cluster, and each one's way through the translation.

Pure over `listing.Reader`. Everything that is wrong with every TFJob is said at once, with file
and line.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.files import manifest
from tfadmit_client.migrate import fields, judge, reading, summary, tfjob, translate
from tfadmit_webhook import raw
from tfadmit_webhook.settings import Settings

KIND = listing.Kind(name=tfjob.KIND, group=tfjob.GROUP, version=tfjob.VERSION)
_OLD = (
    "is of a version that ended in 2020: write `apiVersion: kubeflow.org/v1`, put cleanPodPolicy, "
    "ttlSecondsAfterFinished, activeDeadlineSeconds and backoffLimit under spec.runPolicy, and "
    "migrate again"
)
_UNKNOWN = "is no version of TFJob: write `apiVersion: kubeflow.org/v1`, and migrate again"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A TFJob and where it comes from."""

    content: raw.JsonObject
    label: str
    place: str
    namespace: str
    locate: Callable[[raw.Path], str]
    """Give the place of a field: file and line."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The TFJobs of an input."""

    sources: tuple[Source, ...]
    skipped: int = 0
    """How many objects of other kinds there are."""


def from_files(manifests: Sequence[manifest.Manifest], *, names: Sequence[str]) -> Found:
    """Take the TFJobs out of manifests.

    Raises:
        ClientError: there is none, or one is of another version.
    """
    ours = [item for item in manifests if (item.group, item.kind) == (KIND.group, KIND.name)]
    if not ours:
        kinds = sorted({item.kind for item in manifests})
        raise fault.ClientError(
            f"there is no TFJob of kubeflow.org in the input, only {', '.join(kinds)}: "
            "nothing to migrate"
        )
    wanted = [item for item in ours if not names or item.name in names]
    others = [item for item in wanted if item.content["apiVersion"] != "kubeflow.org/v1"]
    if others:
        raise fault.ClientError("\n".join(map(_version, others)))
    _check_names(names, {item.name for item in ours})
    return Found(
        sources=tuple(map(_source, wanted)),
        skipped=len(manifests) - len(ours),
    )


def from_cluster(reader: listing.Reader, *, namespace: str | None, names: Sequence[str]) -> Found:
    """Read the TFJobs of one namespace, or of all.

    Raises:
        ReadError: they cannot be read.
        ClientError: a name is not there.
    """
    items = [raw.mapping(item) for item in listing.objects(reader, KIND, namespace=namespace)]
    known = [(raw.text(raw.at(item, ("metadata", "name"))), item) for item in items]
    _check_names(names, {name for name, _ in known})
    wanted = [item for name, item in known if not names or name in names]
    return Found(sources=tuple(map(_live, wanted)))


def results(
    sources: Sequence[Source], *, options: translate.Options, settings: Settings
) -> list[summary.Result]:
    """Translate and judge each TFJob.

    Raises:
        ClientError: with everything that is wrong with every one of them.
    """
    if options.name and len(sources) != 1:
        raise fault.ClientError(
            f"--name is for one TFJob, and there are {len(sources)}: say which, by its name"
        )
    made: list[summary.Result] = []
    faults: list[str] = []
    for source in sources:
        job = reading.read(source.content)
        if isinstance(job, tfjob.TFJob):
            made.append(_result(source, job, options, settings))
        else:
            faults += [f"{source.locate(item.path)}: {_sentence(source, item)}" for item in job]
    if faults := [*faults, *_doubles(sources, made)]:
        raise fault.ClientError("\n".join(faults))
    return made


def _doubles(sources: Sequence[Source], made: Sequence[summary.Result]) -> Iterator[str]:
    """Find runtimes that would take each other's place: names that the API server completes."""
    seen: dict[tuple[str, str], str] = {}
    for source, result in zip(sources, made, strict=False):
        name = raw.text(raw.at(result.made.runtime, ("metadata", "name")))
        earlier = seen.setdefault((source.namespace, name), source.place)
        if earlier != source.place:
            yield (
                f"{source.place}: {source.label}: its runtime would be {name}, and so is that of "
                f"{earlier}: migrate one of the two by itself, with --name"
            )


def is_refused(result: summary.Result) -> bool:
    """Whether the webhook would refuse the output."""
    return any(entry.refuses for entry in result.entries)


def _result(
    source: Source, job: tfjob.TFJob, options: translate.Options, settings: Settings
) -> summary.Result:
    made = translate.translate(job, options)
    found = judge.judge(made, settings=settings, namespace=source.namespace)
    return summary.Result(
        label=source.label, source=source.place, made=made, entries=(*made.entries, *found)
    )


def _sentence(source: Source, item: fields.Fault) -> str:
    path = raw.dotted(item.path)
    return ": ".join(part for part in (source.label, path, item.message) if part)


def _version(item: manifest.Manifest) -> str:
    version = raw.text(item.content["apiVersion"])
    is_old = version.removeprefix("kubeflow.org/").startswith(("v1alpha", "v1beta"))
    return f"{item.source}: {version} {_OLD if is_old else _UNKNOWN}"


def _source(item: manifest.Manifest) -> Source:
    def locate(path: raw.Path) -> str:
        return f"{item.file}:{item.locate(path).line}" if path else item.source

    return Source(
        content=item.content,
        label=item.label,
        place=item.source,
        namespace=item.namespace,
        locate=locate,
    )


def _live(content: raw.JsonObject) -> Source:
    namespace = raw.text(raw.at(content, ("metadata", "namespace")))
    name = raw.text(raw.at(content, ("metadata", "name")))
    full = {"apiVersion": "kubeflow.org/v1", "kind": tfjob.KIND, **content}
    return Source(
        content=full,
        label=f"TFJob {namespace}/{name}",
        place="the cluster",
        namespace=namespace,
        locate=lambda _: "the cluster",
    )


def _check_names(names: Sequence[str], known: set[str]) -> None:
    if missing := [name for name in names if name not in known]:
        shown = ", ".join(sorted(known)) or "none"
        raise fault.ClientError(f"there is no TFJob {', '.join(missing)}; there are: {shown}")
