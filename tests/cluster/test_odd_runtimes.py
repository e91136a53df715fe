"""Runtimes that nobody means, at a real API server: a clear answer each, never a fault of ours."""

import copy
import json

import pytest
import yaml

import builders
from cluster import support
from harness.api import ApiError

pytestmark = pytest.mark.usefixtures("tfadmit")

# More than a dozen rules refuse it; what Kubernetes and Trainer check themselves is right.
MANY = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata:
  name: many
  labels: {trainer.kubeflow.org/framework: tensorflow}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  podGroupPolicy: {coscheduling: {}}
  template:
    spec:
      network: {enableDNSHostnames: false}
      failurePolicy: {maxRestarts: 2}
      successPolicy: {operator: All, targetReplicatedJobs: [ps]}
      replicatedJobs:
        - name: ps
          template:
            spec:
              backoffLimit: 0
              completionMode: NonIndexed
              template:
                metadata: {labels: {tfadmit.dev/role: boss}}
                spec:
                  schedulerName: gang
                  restartPolicy: Always
                  hostNetwork: true
                  containers:
                    - {name: node, image: x, env: [{name: TF_CONFIG, value: "{}"}]}
        - name: evaluator
          template:
            spec:
              backoffLimit: 0
              template:
                metadata: {annotations: {tfadmit.dev/containers: train}}
                spec:
                  schedulerName: gang
                  containers: [{name: node, image: x}]
        - name: node
          dependsOn: [{name: missing, status: Ready}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              backoffLimit: 0
              template:
                metadata: {annotations: {k8s.v1.cni.cncf.io/networks: hostdevice-net}}
                spec:
                  schedulerName: gang
                  restartPolicy: Never
                  containers: [{name: node, image: x}]
"""
IDS = [f"TFA{number:03}" for number in (1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 18, 19, 20)]


def test_all_violations_of_a_runtime_are_told_at_once(cluster, namespace):
    runtime = yaml.safe_load(MANY)
    runtime["metadata"]["namespace"] = namespace
    result = support.applied(cluster, runtime)
    assert result.returncode == 1
    assert sorted({text.split()[0] for text in support.denied(result)}) == IDS


def grown(runtime, *, size):
    """The runtime with so many bytes of environment, as nothing else in it has no limit."""
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    entries = size // 1000
    container["env"] = [{"name": f"V{number}", "value": "x" * 970} for number in range(entries)]
    return runtime


def create(cluster, runtime):
    """`kubectl create`: apply writes the object into an annotation, which may have 256 KiB."""
    return cluster.kubectl("create", "-f", "-", input=json.dumps(runtime), check=False)


def test_a_runtime_of_a_mebibyte_is_judged_like_any_other(cluster, namespace):
    good = grown(support.shipped_runtime(name="large", namespace=namespace), size=1024 * 1024)
    result = create(cluster, good)
    assert (result.returncode, result.stderr) == (0, "")
    bad = support.network(copy.deepcopy(good), {})
    bad["metadata"]["name"] = "large-and-bad"
    result = create(cluster, bad)
    assert result.returncode == 1
    assert [text.split()[0] for text in support.denied(result)] == ["TFA001"]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (2 * 1024 * 1024, "request is too large"),
        (4 * 1024 * 1024, "limit is 3145728"),
    ],
)
def test_what_is_too_large_is_refused_by_the_api_server_itself(cluster, namespace, size, words):
    runtime = grown(support.shipped_runtime(name="huge", namespace=namespace), size=size)
    result = create(cluster, runtime)
    assert result.returncode == 1
    assert words in result.stderr.lower()
    assert "tfadmit" not in result.stderr


def test_kubectl_apply_of_a_mebibyte_says_what_is_too_long(cluster, namespace):
    runtime = grown(support.shipped_runtime(name="large", namespace=namespace), size=1024 * 1024)
    result = support.applied(cluster, runtime)
    assert result.returncode == 1
    assert "metadata.annotations: Too long" in result.stderr


JUNK: tuple[object, ...] = ("text", 3, 2.5, True, None, [], {}, ["text"], {"a": 1})
FAULTS = ("failed calling webhook", "failed to judge", "Traceback", "Internal error occurred")


def replaced(value, path, junk):
    changed = copy.deepcopy(value)
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = junk
    return changed


def answer(cluster, content, namespace):
    """The refusal of an object, None where it is accepted."""
    try:
        cluster.create(content, namespace=namespace, dry_run=True)
    except ApiError as error:
        return error
    return None


@pytest.mark.timeout(600)
def test_a_value_of_any_type_at_any_place_gets_a_clear_answer(cluster, namespace):
    runtime = support.shipped_runtime(name="odd", namespace=namespace)
    kept = [("apiVersion",), ("kind",), ("metadata",), ("metadata", "namespace")]
    accepted = refused = ours = 0
    for path in builders.places(runtime):
        if path in kept:
            continue  # it would be another object, or at another place
        for junk in JUNK:
            error = answer(cluster, replaced(runtime, path, junk), namespace)
            if error is None:
                accepted += 1
                continue
            assert error.status in (400, 403, 422), (path, junk, error.message)
            assert error.message
            assert not any(words in error.message for words in FAULTS), (path, junk, error)
            refused += 1
            ours += "validate.tfadmit.dev" in error.message
    assert accepted
    assert refused > ours > 0


@pytest.mark.parametrize(
    ("path", "junk", "words"),
    [
        (("spec", "mlPolicy", "numNodes"), "two", "must be of type integer"),
        (("spec", "template", "spec", "replicatedJobs"), {}, "must be of type array"),
        (("spec", "template", "spec", "network"), [], "must be of type object"),
        (("spec", "template", "spec", "network"), None, "TFA001"),
        (("metadata", "labels"), [], "cannot unmarshal array"),
        (("spec",), None, "TFA001"),
    ],
)
def test_kubectl_shows_what_is_of_a_wrong_type(cluster, namespace, path, junk, words):
    runtime = replaced(support.shipped_runtime(name="odd", namespace=namespace), path, junk)
    result = support.applied(cluster, runtime)
    assert result.returncode == 1
    assert words in result.stderr
    assert not any(fault in result.stderr for fault in FAULTS)
