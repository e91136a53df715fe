"""Whether a cluster is ready for TensorFlow on Kubeflow Trainer: one line per thing to know.

Asks through the protocol `Cluster`, which `live` implements; what cannot be known for want of a
right is a line too, and no failure. Nothing is written: the probe pod is a dry run.
"""

import base64
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tfadmit_client import audit, listing
from tfadmit_trainer import contract
from tfadmit_webhook import raw
from tfadmit_webhook.settings import Settings

State = Literal["ok", "note", "warn", "fail"]

_README = "deploy/README.md"
_APPLY = "`kubectl apply -k` of your overlay"
_SERVED = (
    ("trainer.kubeflow.org", "v1alpha1", "Kubeflow Trainer 2.x",
     ("ClusterTrainingRuntime", "TrainingRuntime", "TrainJob")),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet", ("JobSet",)),
)  # fmt: skip
_CONFIGURATIONS = (
    ("Mutating", {"pods.tfadmit.dev": "Fail", "runtimes.tfadmit.dev": "Fail"}),
    (
        "Validating",
        {"runtimes.validate.tfadmit.dev": "Fail", "trainjobs.validate.tfadmit.dev": "Ignore"},
    ),
)
_OPTIONAL = (("scheduling.volcano.sh", "Volcano"), ("kueue.x-k8s.io", "Kueue"))
_DAY = 86_400
_SOON = 30 * _DAY


@dataclass(frozen=True, kw_only=True)
class Line:
    """Something that was looked at."""

    state: State
    text: str
    """What was found, and after a semicolon what helps."""


class Cluster(listing.Reader, Protocol):
    """A cluster that is asked."""

    def version(self) -> raw.JsonObject:
        """Ask for the version of the API server."""

    def groups(self) -> raw.JsonObject:
        """Ask for the API groups."""

    def resources(self, group: str, version: str) -> raw.JsonObject:
        """Ask for the kinds of a group; StatusError 404 when it is not served."""

    def configuration(self, plural: str) -> raw.JsonObject:
        """Ask for our webhook configuration of one of the two kinds."""

    def tried_pod(self, namespace: str, pod: raw.JsonObject) -> raw.JsonObject:
        """Create a pod by a dry run: give it as it would be."""


def check(cluster: Cluster, *, namespace: str, settings: Settings, now: float) -> Iterator[Line]:
    """Look at everything; the probe pod is tried in the namespace.

    Raises:
        UnreachableError: nobody answers.
    """
    version = raw.text(cluster.version().get("gitVersion"))
    yield Line(state="ok", text=f"the API server answers, {version or 'version unknown'}")
    for group, wanted, product, kinds in _SERVED:
        yield _served(cluster, f"{group}/{wanted}", product, kinds)
    for prefix, hooks in _CONFIGURATIONS:
        yield from _configuration(cluster, prefix, hooks, now)
    yield _probe(cluster, namespace)
    yield from _violations(cluster, settings)
    yield from _optional(cluster)


def _served(cluster: Cluster, version: str, product: str, kinds: Sequence[str]) -> Line:
    hint = (
        f"install {product}, or another release of it; `kubectl api-versions` lists what is there"
    )
    try:
        found = cluster.resources(*version.split("/"))
    except listing.StatusError as error:
        if error.status != 404:
            return Line(state="warn", text=f"{version} is unknown: {error}")
        return Line(state="fail", text=f"{version} is not served; {hint}")
    names = {raw.mapping(item).get("kind") for item in raw.sequence(found.get("resources"))}
    if missing := [kind for kind in kinds if kind not in names]:
        return Line(state="fail", text=f"{version} does not serve {', '.join(missing)}; {hint}")
    return Line(state="ok", text=f"{version} serves {', '.join(kinds)}")


def _configuration(
    cluster: Cluster, prefix: str, hooks: dict[str, str], now: float
) -> Iterator[Line]:
    kind = f"{prefix}WebhookConfiguration"
    try:
        found = cluster.configuration(f"{kind.lower()}s")
    except listing.StatusError as error:
        if error.status == 404:
            text = f"there is no {kind} tfadmit; {_APPLY}, see {_README}"
            yield Line(state="fail", text=text)
        else:
            text = f"{kind} tfadmit is unknown: {error}; the right is get on {kind.lower()}s"
            yield Line(state="warn", text=text)
        return
    items = map(raw.mapping, raw.sequence(found.get("webhooks")))
    by_name = {raw.text(item.get("name")): item for item in items}
    for name, policy in hooks.items():
        hook = by_name.get(name)
        if hook is None:
            text = f"{kind} tfadmit has no webhook {name}; {_APPLY}"
            yield Line(state="fail", text=text)
        else:
            yield _hook(hook, name, policy, now)


def _hook(hook: raw.JsonObject, name: str, policy: str, now: float) -> Line:
    patch = f"see Certificates in {_README}"
    bundle = raw.text(raw.at(hook, ("clientConfig", "caBundle")))
    if not bundle:
        return Line(state="fail", text=f"webhook {name} has no caBundle; {patch}")
    try:
        end = _end(bundle)
    except ValueError as error:
        return Line(
            state="fail", text=f"webhook {name}: its caBundle is of no use: {error}; {patch}"
        )
    days = int((end - now) // _DAY)
    if end <= now:
        text = f"webhook {name}: the CA in its caBundle has expired; issue a new one, {patch}"
        return Line(state="fail", text=text)
    stated = raw.text(hook.get("failurePolicy"))
    if stated != policy:
        text = (
            f"webhook {name} has failurePolicy {stated}; {policy} is what is shipped, see {_README}"
        )
        return Line(state="warn", text=text)
    if end - now < _SOON:
        text = f"webhook {name}: the CA in its caBundle expires in {days} days; {patch}"
        return Line(state="warn", text=text)
    return Line(state="ok", text=f"webhook {name}: failurePolicy {policy}, CA good for {days} days")


def _end(bundle: str) -> float:
    """Give when the last CA of a caBundle expires.

    Raises:
        ValueError: there is none in it, and why.
    """
    try:
        pem = base64.b64decode(bundle, validate=True).decode("ascii")
        found = ssl.create_default_context(cadata=pem).get_ca_certs()
    except (ValueError, ssl.SSLError) as error:
        raise ValueError("it is no PEM in base64") from error
    ends = [ssl.cert_time_to_seconds(str(item["notAfter"])) for item in found]
    if not ends:
        raise ValueError("it has no CA certificate")
    return max(ends)


def _probe(cluster: Cluster, namespace: str) -> Line:
    pods = f"pods in namespace {namespace}"
    try:
        made = cluster.tried_pod(namespace, _POD)
    except listing.StatusError as error:
        if "tfadmit.dev" in error.said:
            see = "docs/runbooks.md says what to do"
            return Line(state="fail", text=f"TensorFlow {pods} are refused: {error.said}; {see}")
        text = f"whether the webhook is called is unknown, a dry run ended: {error.said}"
        return Line(state="warn", text=f"{text}; another namespace may tell: -n NS")
    containers = raw.sequence(raw.at(made, ("spec", "containers")))
    names = {
        raw.mapping(entry).get("name")
        for item in containers
        for entry in raw.sequence(raw.mapping(item).get("env"))
    }
    if contract.TASK_INDEX_ENV in names:
        return Line(state="ok", text=f"the webhook is called for {pods} (dry run)")
    text = f"TensorFlow {pods} get no cluster: the webhook is not called for them (dry run)"
    fix = "`kubectl get mutatingwebhookconfiguration tfadmit -o yaml` shows for which it is"
    return Line(state="fail", text=f"{text}; {fix}")


def _violations(cluster: Cluster, settings: Settings) -> Iterator[Line]:
    report = audit.audit(cluster, namespace=None, settings=settings)
    for failure in report.failures:
        if not failure.object:
            yield Line(
                state="warn", text=f"{failure.kind}s are not (all) judged: {failure.message}"
            )
    denied = sum(item.level == "deny" for item in report.findings)
    warned = len(report.findings) - denied
    text = f"objects judged: {report.count('judged')}, violations: {denied}, warnings: {warned}"
    state: State = "fail" if denied else "warn" if warned else "ok"
    yield Line(state=state, text=text if state == "ok" else f"{text}; `tfadmit audit` shows them")


def _optional(cluster: Cluster) -> Iterator[Line]:
    try:
        groups = raw.sequence(cluster.groups().get("groups"))
    except listing.StatusError:
        return
    names = {raw.mapping(group).get("name") for group in groups}
    for group, product in _OPTIONAL:
        state = "installed" if group in names else "not installed (optional)"
        yield Line(state="note", text=f"{product} is {state}")


_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "tfadmit-check-",
        "labels": {contract.FRAMEWORK_LABEL: contract.FRAMEWORK},
        "annotations": {contract.CLUSTER_ANNOTATION: '{"worker":["tfadmit-check.example:12345"]}'},
    },
    "spec": {
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "node",
                "image": "example.com/none",
                "resources": {
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}  # fmt: skip
