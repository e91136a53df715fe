"""Runtimes at `kubectl apply`: labelled where they can work, refused where they cannot."""

import json

import pytest
import yaml

from cluster import support

pytestmark = pytest.mark.usefixtures("tfadmit")
LABEL = {"trainer.kubeflow.org/framework": "tensorflow"}
FIELD = "spec.template.spec.network.publishNotReadyAddresses"


def kubectl_apply(cluster, manifest, *options, check=True):
    return cluster.kubectl(
        "apply", "-f", "-", *options, input=yaml.safe_dump(manifest), check=check
    )


def pod_labels(runtime):
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    return (job["template"]["spec"]["template"].get("metadata") or {}).get("labels")


@pytest.mark.parametrize(
    "network",
    [
        {},
        {"publishNotReadyAddresses": False},
        None,
        {"enableDNSHostnames": True},
    ],
    ids=["empty", "false", "null", "missing"],
)
@pytest.mark.parametrize("kind", support.RUNTIMES)
def test_a_runtime_that_hides_unready_pods_is_refused_at_kubectl_apply(
    cluster, namespace, kind, network
):
    runtime = support.shipped_runtime(
        name=f"bad-{namespace}", namespace=namespace if kind == "TrainingRuntime" else None
    )
    result = kubectl_apply(cluster, support.network(runtime, network), check=False)
    assert result.returncode == 1
    assert 'admission webhook "runtimes.validate.tfadmit.dev" denied the request' in result.stderr
    assert FIELD in result.stderr
    assert "`publishNotReadyAddresses: true`" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("kind", support.RUNTIMES)
def test_an_update_that_breaks_a_runtime_is_refused(cluster, namespace, kind):
    runtime = support.shipped_runtime(
        name=f"good-{namespace}", namespace=namespace if kind == "TrainingRuntime" else None
    )
    with support.applied_runtime(cluster, runtime):
        # The API server itself refuses another value (JobSet declares the section immutable),
        # but not its removal.
        plural = f"{kind.lower()}s.trainer.kubeflow.org"
        result = cluster.kubectl(
            "patch", plural, f"good-{namespace}", "-n", namespace, "--type=json",
            "-p", '[{"op":"remove","path":"/spec/template/spec/network"}]', check=False,
        )  # fmt: skip
        assert result.returncode == 1
        assert FIELD in result.stderr


def test_the_label_on_the_runtime_alone_reaches_its_pods(cluster, namespace):
    runtime = support.shipped_runtime(name="only-metadata", namespace=namespace)
    assert pod_labels(runtime) is None
    cluster.apply(runtime)
    stored = cluster.get("TrainingRuntime", "only-metadata", namespace)
    assert pod_labels(stored) == LABEL
    cluster.apply(support.trainjob(namespace, runtime="only-metadata", numNodes=2))
    for pod in support.pods(cluster, namespace, count=2):
        assert pod["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "tensorflow"
        assert support.env(pod)["TF_NUM_WORKERS"] == "2"
    jobset = cluster.get("JobSet", "mnist", namespace)
    assert jobset["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "tensorflow"


@pytest.mark.parametrize("labels", [{}, {"trainer.kubeflow.org/framework": "torch"}])
def test_a_runtime_of_another_framework_is_neither_touched_nor_refused(cluster, namespace, labels):
    runtime = support.shipped_runtime(name="other", namespace=namespace)
    runtime["metadata"]["labels"] = labels
    cluster.apply(support.network(runtime, {"enableDNSHostnames": False}))
    stored = cluster.get("TrainingRuntime", "other", namespace)
    assert pod_labels(stored) is None
    assert "metadata" not in stored["spec"]["template"]


def test_a_runtime_from_before_us_in_violation_can_still_be_used_and_deleted(
    cluster, namespace, tfadmit
):
    runtime = support.network(support.shipped_runtime(name="old", namespace=namespace), {})
    runtime["metadata"]["labels"] = {}
    cluster.apply(runtime)
    # the label comes later, while nobody judges: as on a cluster that gets tfadmit today
    configurations = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    kept = [cluster.get(kind, "tfadmit") for kind in configurations]
    for kind in configurations:
        cluster.delete(kind, "tfadmit")
    try:
        cluster.wait(
            lambda: label(cluster, namespace, "old"),
            until=lambda result: result.returncode == 0,
            what="the API server forgets the webhooks",
        )
    finally:
        for item in kept:
            bare = {"name": item["metadata"]["name"], "labels": item["metadata"]["labels"]}
            cluster.apply(
                {key: item[key] for key in ("apiVersion", "kind", "webhooks")} | {"metadata": bare}
            )
        tfadmit.wait_until_called()
    # Trainer adds a finalizer to a runtime in use: an update that is not the user's
    cluster.kubectl("annotate", "trainingruntime", "old", "-n", namespace, "note=still-usable")
    assert pod_labels(cluster.get("TrainingRuntime", "old", namespace)) == LABEL
    change = {"spec": {"mlPolicy": {"numNodes": 2}}}
    result = cluster.kubectl(
        "patch", "trainingruntime", "old", "-n", namespace, "--type=merge",
        "-p", json.dumps(change), check=False,
    )  # fmt: skip
    assert FIELD in result.stderr
    cluster.kubectl("delete", "trainingruntime", "old", "-n", namespace)


def label(cluster, namespace, name):
    return cluster.kubectl(
        "label", "trainingruntime", name, "-n", namespace, "--overwrite",
        "trainer.kubeflow.org/framework=tensorflow", check=False,
    )  # fmt: skip


def test_giving_a_bad_runtime_the_label_is_refused(cluster, namespace):
    runtime = support.network(support.shipped_runtime(name="late", namespace=namespace), {})
    runtime["metadata"]["labels"] = {}
    cluster.apply(runtime)
    assert FIELD in label(cluster, namespace, "late").stderr


def test_a_server_side_dry_run_shows_the_mutation_and_writes_nothing(cluster, namespace):
    runtime = support.shipped_runtime(name="dry", namespace=namespace)
    result = kubectl_apply(cluster, runtime, "--dry-run=server", "-o", "json")
    assert pod_labels(json.loads(result.stdout)) == LABEL
    assert cluster.list("TrainingRuntime", namespace) == []
    bad = support.network(support.shipped_runtime(name="dry", namespace=namespace), {})
    assert FIELD in kubectl_apply(cluster, bad, "--dry-run=server", check=False).stderr


def test_kubectl_diff_works(cluster, namespace):
    runtime = support.shipped_runtime(name="diff", namespace=namespace)
    first = cluster.kubectl("diff", "-f", "-", input=yaml.safe_dump(runtime), check=False)
    assert first.returncode == 1, first.stderr
    assert "trainer.kubeflow.org/framework: tensorflow" in first.stdout
    kubectl_apply(cluster, runtime, "--server-side")
    again = cluster.kubectl(
        "diff", "--server-side", "-f", "-", input=yaml.safe_dump(runtime), check=False
    )
    assert (again.returncode, again.stdout) == (0, ""), again.stdout + again.stderr


@pytest.mark.parametrize("name", ["tensorflow-distributed", "tensorflow-distributed-infiniband"])
def test_the_shipped_runtimes_are_accepted(cluster, name):
    for item in support.load(f"deploy/runtimes/{name}.yaml"):
        assert pod_labels(cluster.apply(item, dry_run=True)[0]) == LABEL


def test_the_shipped_bad_example_is_refused(cluster):
    path = support.ROOT / "deploy/examples/runtime-refused.yaml"
    result = cluster.kubectl("apply", "-f", str(path), check=False)
    assert result.returncode == 1
    assert FIELD in result.stderr
