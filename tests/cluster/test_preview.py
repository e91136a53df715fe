"""`tfadmit preview` beside a real cluster: each admitted pod as the preview shows it, by field."""

import pytest

from cluster import support
from tfadmit_client.files import manifest, yamltext
from tfadmit_client.preview import previewing
from tfadmit_webhook.settings import Settings

pytestmark = pytest.mark.usefixtures("tfadmit")
CASES = (
    *(f"tests/golden/preview/{case}/input.yaml" for case in ("trainjob", "infiniband", "roles")),
    *(f"tests/golden/preview/{case}/input.yaml" for case in ("patched", "everything", "replicas")),
    "deploy/examples/jobset-roles.yaml",
    "deploy/examples/job-indexed.yaml",
)

# What a cluster adds to a pod: defaults, admission plugins, and marks of the object's own life.
ADDED = {
    *("name", "creationTimestamp", "generation", "resourceVersion", "managedFields"),
    *("dnsPolicy", "schedulerName", "securityContext", "terminationGracePeriodSeconds"),
    *("resources", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy"),
    *("volumes", "volumeMounts", "serviceAccountName", "serviceAccount", "tolerations"),
    *("priority", "enableServiceLinks", "preemptionPolicy", "apiVersion"),
    "requests",  # limits without requests
    # JobSet's pod webhook copies spec.priority, which comes from the cluster's PriorityClasses.
    "jobset.sigs.k8s.io/priority",
}


@pytest.mark.parametrize("case", CASES)
def test_pods_are_as_previewed(cluster, namespace, case):
    given = [applicable(item, namespace) for item in objects(case)]
    expected = previewed(given)
    try:
        for item in given:
            cluster.apply(item)
        found = support.pods(cluster, namespace, count=len(expected))
        made = {pod["spec"]["hostname"]: pod for pod in found}
        assert sorted(made) == sorted(expected)
        for name, pod in expected.items():
            for part in ("metadata", "spec"):
                assert differences(pod[part], made[name][part], part) == []
    finally:
        for item in given:
            if item["kind"] == "ClusterTrainingRuntime":
                cluster.delete(item["kind"], item["metadata"]["name"])


def objects(case):
    text = (support.ROOT / case).read_text()
    return [document.content for document in yamltext.documents(text)]


def applicable(item, namespace):
    """The object without what this cluster cannot do or would not take."""
    if item["kind"] != "ClusterTrainingRuntime":
        item["metadata"]["namespace"] = namespace
    item["spec"].pop("podGroupPolicy", None)  # no gang scheduler here
    item["spec"].pop("suspend", None)
    for patch in item["spec"].get("runtimePatches", []):
        spec = patch["trainingRuntimeSpec"]["template"].get("spec", {})
        for job in spec.get("replicatedJobs", []):
            pod = job["template"]["spec"]["template"].get("spec", {})
            for container in pod.get("containers", []):
                container.pop("imagePullPolicy", None)  # no field of a patch
    return item


def previewed(given):
    manifests = [manifest.Manifest(content=item, file="x", line=1) for item in given]
    report = previewing.preview(manifests, settings=Settings())
    return {pod.name: pod.content for section in report.sections for pod in section.pods}


def differences(ours, theirs, path):
    """Every place where ours is not theirs, or theirs has more than a cluster adds to any pod."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = [f"{path}.{key}: only ours" for key in ours if key not in theirs]
        more = sorted(set(theirs) - set(ours) - ADDED)
        found += [f"{path}.{key}: only theirs" for key in more if not key.endswith("uid")]
        for key in ours.keys() & theirs.keys():
            if not key.endswith("uid"):
                found += differences(ours[key], theirs[key], f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list):
        kept = [item for item in theirs if not is_added(item)]
        if len(kept) == len(ours):
            pairs = enumerate(zip(ours, kept, strict=True))
            return [text for at, (a, b) in pairs for text in differences(a, b, f"{path}[{at}]")]
    return [] if ours == theirs else [f"{path}: ours {ours!r}, theirs {theirs!r}"]


def is_added(item):
    """The service account's volume and its mount, and the tolerations of every pod."""
    name = str(item.get("name") or item.get("key")) if isinstance(item, dict) else ""
    return name.startswith(("kube-api-access-", "node.kubernetes.io/"))
