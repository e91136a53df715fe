"""Judging the objects of a live cluster by the webhook's rules.

Pure over `listing.Reader`. Runtimes and TrainJobs are judged by `policy`, as at admission. A
JobSet has no rules of its own: its network section is judged by those of runtimes, and its roles,
ports and names by `cluster.plan`, which refuses its pods for the same reasons. One object or one
kind that cannot be read is reported, and the others are judged.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tfadmit_client import expansion, listing
from tfadmit_trainer import contract
from tfadmit_webhook import cluster, mutate, policy, ratchet, raw, trainjob, workload
from tfadmit_webhook.decision import Refusal
from tfadmit_webhook.settings import Level, Settings

Outcome = Literal["judged", "skipped", "failed"]

_TRAINER = "trainer.kubeflow.org"
# In this order, so that a TrainJob finds its runtime.
KINDS = (
    listing.Kind(
        name="ClusterTrainingRuntime", group=_TRAINER, version="v1alpha1", namespaced=False
    ),
    listing.Kind(name="TrainingRuntime", group=_TRAINER, version="v1alpha1"),
    listing.Kind(name="TrainJob", group=_TRAINER, version="v1alpha1"),
    listing.Kind(name="JobSet", group="jobset.x-k8s.io", version="v1alpha2"),
)
_ORDER = {kind.name: index for index, kind in enumerate(KINDS)}
_TEMPLATE: raw.Path = ("spec", "template")
_NETWORK: raw.Path = ("spec", "template", "spec", "network")
_ENDED = frozenset({"Complete", "Completed", "Failed"})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is wrong with an object."""

    kind: str
    namespace: str
    """Empty for a runtime of the whole cluster."""

    name: str
    rule: str
    """The identifier of a rule, or the reason for which pods are refused."""

    level: Level
    path: str
    message: str

    @property
    def label(self) -> str:
        """Kind, namespace and name for people."""
        return _label(self.kind, self.namespace, self.name)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A kind, or one object of it, that could not be judged."""

    kind: str
    object: str
    """The label of the object; empty when it is the whole kind, or the rest of it."""

    message: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """What judging a cluster gave."""

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    objects: Mapping[tuple[str, Outcome], int]
    """How many objects of a kind were judged, have no rules, or could not be judged."""

    @property
    def denied(self) -> bool:
        """Whether the webhook would refuse one of the objects, or its pods."""
        return any(item.level == "deny" for item in self.findings)

    def count(self, outcome: Outcome) -> int:
        """How many objects came out like this."""
        return sum(number for (_, was), number in self.objects.items() if was == outcome)

    def is_read(self, kind: str) -> bool:
        """Whether all objects of a kind could be read."""
        return not any(item.kind == kind and not item.object for item in self.failures)


class _NotJudgedError(Exception):
    """An object cannot be judged; the message says why."""


def audit(reader: listing.Reader, *, namespace: str | None, settings: Settings) -> Report:
    """Judge all objects of one namespace, or of all and those that have none.

    Raises:
        UnreachableError: nothing at all could be read.
    """
    run = _Run(namespace=namespace, settings=settings)
    for kind in KINDS:
        run.read(kind, reader)
    return run.report()


class _Run:
    """What is known while the kinds come in."""

    def __init__(self, *, namespace: str | None, settings: Settings) -> None:
        self._complete: set[str] = set()
        self._namespace = namespace
        self._settings = settings
        self._runtimes: dict[expansion.Key, raw.JsonObject] = {}
        self._findings: list[Finding] = []
        self._failures: list[Failure] = []
        self._objects: Counter[tuple[str, Outcome]] = Counter()

    def read(self, kind: listing.Kind, reader: listing.Reader) -> None:
        """Judge all objects of a kind, or those before the one where reading ends."""
        namespace = self._namespace if kind.namespaced else None
        try:
            for item in listing.objects(reader, kind, namespace=namespace):
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
        label = _label(kind.name, namespace, name or "(no name)")
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
        labelled = expansion.labelled(content)
        found = _violations(content, policy.judge_runtime(labelled, settings=self._settings))
        return [*found, *_uncopied(content)]

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
        violations = policy.judge_trainjob(content, on=on, settings=self._settings)
        return _violations(content, violations)

    def _jobset(self, content: raw.JsonObject) -> list[Finding] | None:
        work = workload.jobset(content)
        if not work.groups:
            return None
        as_runtime = {**content, "spec": {"template": {"spec": content.get("spec")}}}
        network = [
            dataclasses.replace(item, finding=_moved(item.finding))
            for item in policy.judge_runtime(as_runtime, settings=self._settings)
            if item.finding.path[: len(_NETWORK)] == _NETWORK
        ]
        settings = self._settings
        planned = cluster.plan(
            work, domain=settings.cluster_domain, default_port=settings.default_port
        )
        found = _violations(content, network)
        return [*found, _refused(content, planned)] if isinstance(planned, Refusal) else found


def _violations(content: raw.JsonObject, violations: Sequence[policy.Violation]) -> list[Finding]:
    return [
        _finding(
            content,
            rule=item.rule.id,
            level=item.level,
            path=item.finding.path,
            message=item.sentence,
        )
        for item in violations
    ]


def _uncopied(content: raw.JsonObject) -> list[Finding]:
    """Tell of a runtime from before tfadmit: its pods do not have the label yet."""
    if not mutate.runtime(content):
        return []
    metadata = raw.mapping(content.get("metadata"))
    namespace, kind = raw.text(metadata.get("namespace")), raw.text(content.get("kind")).lower()
    option = f" -n {namespace}" if namespace else ""
    get = f"kubectl get {kind} {raw.text(metadata.get('name'))}{option} -o yaml"
    message = (
        f"label-not-copied {raw.dotted(_TEMPLATE)} has pod templates without the label "
        f"{contract.FRAMEWORK_LABEL}: the runtime was not changed since tfadmit is there, and its "
        f"pods get no cluster; fix: `{get} | kubectl replace -f -`"
    )
    rule = "label-not-copied"
    return [_finding(content, rule=rule, level="warn", path=_TEMPLATE, message=message)]


def _refused(content: raw.JsonObject, refusal: Refusal) -> Finding:
    rule, path = refusal.reason.value, ("spec",)
    said = refusal.message.partition(": ")[2]  # after the label of the JobSet
    message = f"{rule} its pods are refused: {said}"
    return _finding(content, rule=rule, level="deny", path=path, message=message)


def _finding(
    content: raw.JsonObject, *, rule: str, level: Level, path: raw.Path, message: str
) -> Finding:
    metadata = raw.mapping(content.get("metadata"))
    return Finding(
        kind=raw.text(content.get("kind")),
        namespace=raw.text(metadata.get("namespace")),
        name=raw.text(metadata.get("name")),
        rule=rule,
        level=level,
        path=raw.dotted(path),
        message=message,
    )


def _kept(content: raw.JsonObject) -> raw.JsonObject:
    """Give as much of a runtime as TrainJobs need: nothing, when it is another framework's."""
    if not ratchet.is_labelled(content):
        return {}
    metadata = raw.mapping(content.get("metadata"))
    kept = {key: metadata[key] for key in ("labels", "deletionTimestamp") if key in metadata}
    return {"metadata": kept, "spec": content.get("spec")}


def _moved(finding: policy.Finding) -> policy.Finding:
    """Give a finding of a runtime's template the path that it has in a JobSet."""
    return dataclasses.replace(finding, path=finding.path[len(_TEMPLATE) :])


def _has_ended(content: raw.JsonObject) -> bool:
    """Whether a workload makes no more pods."""
    conditions = map(raw.mapping, raw.sequence(raw.at(content, ("status", "conditions"))))
    return any(item.get("type") in _ENDED and item.get("status") == "True" for item in conditions)


def _label(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
