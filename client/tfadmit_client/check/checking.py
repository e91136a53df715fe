"""Whether a cluster is ready for TensorFlow on Kubeflow Trainer: one line per thing to know.

Asks through the protocol `line.Cluster`, which `live` implements; what cannot be known for
want of a right is a line too, and no failure. Nothing is written: the probe pod is a dry run.
"""

from collections.abc import Iterator, Sequence

from tfadmit_client.audit import auditing
from tfadmit_client.check import hooks, sdk, storage
from tfadmit_client.check import runtimes as check_runtimes
from tfadmit_client.check.line import Cluster, Line, State
from tfadmit_client.cluster import listing
from tfadmit_trainer import contract
from tfadmit_webhook import raw
from tfadmit_webhook.settings import Settings

_SERVED = (
    ("trainer.kubeflow.org", "v1alpha1", "Kubeflow Trainer 2.x",
     ("ClusterTrainingRuntime", "TrainingRuntime", "TrainJob")),
    ("jobset.x-k8s.io", "v1alpha2", "JobSet", ("JobSet",)),
)  # fmt: skip
_OPTIONAL = (("scheduling.volcano.sh", "Volcano"), ("kueue.x-k8s.io", "Kueue"))


def check(cluster: Cluster, *, namespace: str, settings: Settings, now: float) -> Iterator[Line]:
    """Look at everything; the probe pod is tried in the namespace.

    Raises:
        UnreachableError: nobody answers.
    """
    version = raw.text(cluster.version().get("gitVersion"))
    yield Line(state="ok", text=f"the API server answers, {version or 'version unknown'}")
    for group, wanted, product, kinds in _SERVED:
        yield _served(cluster, f"{group}/{wanted}", product, kinds)
    yield from hooks.check(cluster, now=now)
    yield _probe(cluster, namespace)
    yield from _violations(cluster, settings)
    runtimes = check_runtimes.read(cluster)
    yield from sdk.check(cluster, runtimes)
    yield from storage.check(cluster, runtimes, namespace=namespace)
    yield from _optional(cluster)


def _served(cluster: Cluster, version: str, product: str, kinds: Sequence[str]) -> Line:
    hint = (
        f"install {product}, or another release of it; `kubectl api-versions{cluster.flags}` lists "
        "what is there"
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
    get = f"kubectl get mutatingwebhookconfiguration tfadmit{cluster.flags} -o yaml"
    fix = f"`{get}` shows for which it is"
    return Line(state="fail", text=f"{text}; {fix}")


def _violations(cluster: Cluster, settings: Settings) -> Iterator[Line]:
    report = auditing.audit(cluster, namespace=None, settings=settings)
    for failure in report.failures:
        if not failure.object:
            yield Line(
                state="warn", text=f"{failure.kind}s are not (all) judged: {failure.message}"
            )
    denied = sum(item.level == "deny" for item in report.findings)
    warned = len(report.findings) - denied
    text = f"objects judged: {report.count('judged')}, violations: {denied}, warnings: {warned}"
    state: State = "fail" if denied else "warn" if warned else "ok"
    fix = f"`tfadmit audit{cluster.flags}` shows them"
    yield Line(state=state, text=text if state == "ok" else f"{text}; {fix}")


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
