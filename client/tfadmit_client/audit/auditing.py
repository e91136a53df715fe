"""All objects of a live cluster that have rules, read and judged one by one.

Pure over `listing.Reader`. One object or one kind that cannot be read is reported, and the others
are judged. What judging an object is stands in `judge`.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from tfadmit_client.audit import judge as audit_judge
from tfadmit_client.audit import report
from tfadmit_client.audit.report import KINDS, Failure, Finding, Outcome, Report
from tfadmit_client.cluster import listing
from tfadmit_client.expand import expansion
from tfadmit_webhook import policy, ratchet, raw, trainjob, workload
from tfadmit_webhook.settings import Settings

_ORDER = {kind.name: index for index, kind in enumerate(KINDS)}
_ENDED = frozenset({"Complete", "Completed", "Failed"})


class _NotJudgedError(Exception):
    """An object cannot be judged; the message says why."""


class Cluster(listing.Reader, Protocol):
    """Where objects come from."""

    flags: str
    """Options that reach this very cluster, each after a space; none for the context in use."""


def audit(cluster: Cluster, *, namespace: str | None, settings: Settings) -> Report:
    """Judge all objects of one namespace, or of all and those that have none.

    Raises:
        UnreachableError: nothing at all could be read.
    """
    run = _Run(cluster, namespace=namespace, settings=settings)
    for kind in KINDS:
        run.read(kind)
    return run.report()


class _Run:
    """What is known while the kinds come in."""

    def __init__(self, cluster: Cluster, *, namespace: str | None, settings: Settings) -> None:
        self._cluster = cluster
        self._labels: dict[str, policy.Labels] = {}
        self._complete: set[str] = set()
        self._namespace = namespace
        self._settings = settings
        self._runtimes: dict[expansion.Key, raw.JsonObject] = {}
        self._findings: list[Finding] = []
        self._failures: list[Failure] = []
        self._objects: Counter[tuple[str, Outcome]] = Counter()

    def read(self, kind: listing.Kind) -> None:
        """Judge all objects of a kind, or those before the one where reading ends."""
        namespace = self._namespace if kind.namespaced else None
        try:
            for item in listing.objects(self._cluster, kind, namespace=namespace):
                self._take(kind, item)
        except listing.ReadError as error:
            nothing_yet = not (self._complete or self._objects or self._failures)
            if nothing_yet and isinstance(error, listing.UnreachableError):
                raise
            self._failures.append(Failure(kind=kind.name, object="", message=str(error)))
        else:
            self._complete.add(kind.name)

    def report(self) -> Report:
        """Give what was found, in the order of kinds, names and fields."""
        findings = sorted(
            self._findings,
            key=lambda item: (
                _ORDER[item.kind], item.namespace, item.name, item.path, item.rule, item.message,
            ),
        )  # fmt: skip
        return Report(
            findings=tuple(findings), failures=tuple(self._failures), objects=dict(self._objects)
        )

    def _take(self, kind: listing.Kind, item: object) -> None:
        """Judge one object; whatever it is, the next one comes."""
        content = raw.mapping(item)
        metadata = raw.mapping(content.get("metadata"))
        namespace, name = raw.text(metadata.get("namespace")), raw.text(metadata.get("name"))
        try:
            if not name:
                raise _NotJudgedError("it is no object with a name")  # noqa: TRY301
            judged = self._judge(kind, content, namespace, name)
        except _NotJudgedError as error:
            self._fail(kind, namespace, name, str(error))
        except Exception as error:  # noqa: BLE001 - one object never ends the run
            self._fail(kind, namespace, name, f"{type(error).__name__}: {error}")
        else:
            self._count(kind, judged)

    def _count(self, kind: listing.Kind, judged: list[Finding] | None) -> None:
        if self._namespace and not kind.namespaced:
            return  # read for the TrainJobs of the namespace only
        self._objects[kind.name, "skipped" if judged is None else "judged"] += 1
        self._findings += judged or ()

    def _fail(self, kind: listing.Kind, namespace: str, name: str, message: str) -> None:
        self._objects[kind.name, "failed"] += 1
        label = report.label(kind.name, namespace, name or "(no name)")
        self._failures.append(Failure(kind=kind.name, object=label, message=message))

    def _judge(
        self, kind: listing.Kind, content: raw.JsonObject, namespace: str, name: str
    ) -> list[Finding] | None:
        """Judge an object by what applies to its kind; None when nothing does."""
        if kind.name == "TrainJob":
            judge: Callable[[raw.JsonObject], list[Finding] | None] = self._trainjob
        elif kind.name == "JobSet":
            judge = self._jobset
        else:
            key = (kind.name, namespace, name)
            self._runtimes[key] = _kept(content)
            judge = self._runtime
        if raw.at(content, ("metadata", "deletionTimestamp")) or _has_ended(content):
            return None
        return judge({**content, "kind": kind.name})

    def _runtime(self, content: raw.JsonObject) -> list[Finding] | None:
        if not ratchet.is_labelled(content):
            return None
        labels = self._labels_for(content)
        return audit_judge.runtime(
            content, settings=self._settings, labels=labels, flags=self._cluster.flags
        )

    def _trainjob(self, content: raw.JsonObject) -> list[Finding] | None:
        namespace = raw.text(raw.at(content, ("metadata", "namespace")))
        reference = trainjob.reference(content, namespace=namespace)
        if reference is None:
            return None
        on = self._runtimes.get((reference.kind, reference.namespace, reference.name))
        if on is None and reference.kind not in self._complete:
            raise _NotJudgedError(f"its runtime could not be read: {reference.label}")
        if on is not None and not ratchet.is_labelled(on):
            return None
        labels = self._labels_for(content)
        return audit_judge.trainjob(content, on=on, settings=self._settings, labels=labels)

    def _jobset(self, content: raw.JsonObject) -> list[Finding] | None:
        work = workload.jobset(content)
        if not work.groups:
            return None
        labels = self._labels_for(content)
        return audit_judge.jobset(content, work, settings=self._settings, labels=labels)

    def _labels_for(self, content: raw.JsonObject) -> policy.Labels:
        """Give the labels of an object's namespace, asked for once, when levels depend on them."""
        if not policy.depends_on_namespace(content, self._settings):
            return {}
        name = raw.text(raw.at(content, ("metadata", "namespace")))
        if name not in self._labels:
            try:
                found = self._cluster.namespace(name)
                self._labels[name] = raw.strings(raw.at(found, ("metadata", "labels")))
            except listing.ReadError as error:
                self._labels[name] = None
                message = f"the strictest level of each rule was taken, as {error}"
                failure = Failure(kind="Namespace", object=f"Namespace {name}", message=message)
                self._failures.append(failure)
        return self._labels[name]


def _kept(content: raw.JsonObject) -> raw.JsonObject:
    """Give as much of a runtime as TrainJobs need: nothing, when it is another framework's."""
    if not ratchet.is_labelled(content):
        return {}
    metadata = raw.mapping(content.get("metadata"))
    kept = {key: metadata[key] for key in ("labels", "deletionTimestamp") if key in metadata}
    return {"metadata": kept, "spec": content.get("spec")}


def _has_ended(content: raw.JsonObject) -> bool:
    """Whether a workload makes no more pods."""
    conditions = map(raw.mapping, raw.sequence(raw.at(content, ("status", "conditions"))))
    return any(item.get("type") in _ENDED and item.get("status") == "True" for item in conditions)
