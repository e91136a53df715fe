"""What the tests against a real cluster say again and again, and the objects they apply."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

import builders
import giving_up
from harness import cluster as harness_cluster
from harness.api import ApiError
from harness.cluster import Cluster

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "deploy/runtimes/tensorflow-distributed.yaml"
RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
Json = dict[str, Any]


def give_up(reason: str) -> NoReturn:
    """Skip what cannot run here; where it must run, fail."""
    if os.environ.get("TFADMIT_REQUIRE_CLUSTER") == "1":
        pytest.fail(reason, pytrace=False)
    giving_up.give_up(reason)


def needs_pod_groups(cluster: Cluster) -> None:
    """Skip on a cluster that the user names and that has no gang scheduler's kinds; ours has."""
    if not cluster.api.knows("podgroup-v1beta1"):
        pytest.skip("the cluster serves no PodGroup of Volcano")


def load(path: str) -> list[Json]:
    """The objects of a shipped file."""
    return harness_cluster.load(ROOT / path)


def pods(cluster: Cluster, namespace: str, *, count: int) -> list[Json]:
    """The pods of a namespace by host name, once there are so many."""
    found = cluster.wait(
        lambda: cluster.list("Pod", namespace),
        until=lambda seen: len(seen) == count,
        what=f"{count} pods in {namespace}",
    )
    return sorted(found, key=lambda pod: str(pod["spec"].get("hostname")))


def env(pod: Json, container: str = "node") -> dict[str, str]:
    """The variables of a container; a double fails."""
    (content,) = [item for item in pod["spec"]["containers"] if item["name"] == container]
    entries = content.get("env", [])
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names)), f"doubles in {names}"
    return {entry["name"]: entry.get("value", "") for entry in entries}


def tf_config(pod: Json, container: str = "node") -> Json:
    content: Json = json.loads(env(pod, container)["TF_CONFIG"])
    return content


def status(pod: Json) -> Json:
    content: Json = json.loads(pod["metadata"]["annotations"]["tfadmit.dev/status"])
    return content


def shipped_runtime(*, name: str, namespace: str | None = None) -> Json:
    """The runtime of deploy/, under a name of the test's own, namespaced on demand."""
    runtime: Json = yaml.safe_load(RUNTIME.read_text())
    runtime["metadata"]["name"] = name
    if namespace:
        runtime["kind"] = "TrainingRuntime"
        runtime["metadata"]["namespace"] = namespace
    return runtime


def network(runtime: Json, value: Any) -> Json:
    runtime["spec"]["template"]["spec"]["network"] = value
    return runtime


@contextlib.contextmanager
def applied_runtime(cluster: Cluster, runtime: Json) -> Iterator[str]:
    """A runtime for one test; cluster-scoped ones outlive the namespace."""
    metadata = cluster.apply(runtime)[0]["metadata"]
    try:
        yield metadata["name"]
    finally:
        cluster.delete(runtime["kind"], metadata["name"], metadata.get("namespace"))


def trainjob(namespace: str, *, runtime: str, name: str = "mnist", **trainer: Any) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runtimeRef": {"name": runtime, "kind": "TrainingRuntime"},
            **({"trainer": trainer} if trainer else {}),
        },
    }


def applied(
    cluster: Cluster, *objects: Json, dry_run: bool = False
) -> subprocess.CompletedProcess[str]:
    """What `kubectl apply` does with objects, and what it prints; a refusal is an answer too."""
    text = yaml.safe_dump_all(objects)
    options = ["--dry-run=server"] if dry_run else []
    return cluster.kubectl("apply", "-f", "-", *options, input=text, check=False)


def warnings(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The warnings that kubectl printed, in their order."""
    lines = result.stderr.splitlines()
    return [line.removeprefix("Warning: ") for line in lines if line.startswith("Warning: ")]


def denied(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The sentences of rules with which one of our webhooks refused, in their order."""
    before, found, said = result.stderr.partition("denied the request: ")
    assert not found or ".tfadmit.dev" in before, result.stderr
    return [line for line in said.splitlines() if line.startswith("TFA")]


def jobset(namespace: str, *jobs: Json, **fields: Any) -> Json:
    """A JobSet as a user writes it, without what the API server adds."""
    content = builders.make_jobset(*(runnable(job) for job in jobs), namespace=namespace, **fields)
    del content["metadata"]["uid"]
    if content["spec"]["suspend"] is None:
        del content["spec"]["suspend"]
    return content


def runnable(job: Json) -> Json:
    template = job["template"]["spec"]["template"]
    template["spec"].setdefault("restartPolicy", "Never")
    if template["metadata"].get("annotations") is None:
        template["metadata"].pop("annotations", None)
    return job


def job(namespace: str, *, name: str, completions: int, labels: Json, **spec: Any) -> Json:
    """An Indexed Job with these labels on its pods."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "completionMode": "Indexed",
            "completions": completions,
            "parallelism": completions,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [builders.make_container()],
                    **spec,
                },
            },
        },
    }


def pod(
    namespace: str, *, name: str, labels: Json | None = None, annotations: Json | None = None
) -> Json:
    """A pod that a user applies himself."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": builders.LABEL if labels is None else labels,
            "annotations": annotations or {},
        },
        "spec": {"containers": [builders.make_container()]},
    }


def refusal(cluster: Cluster, manifest: Json, *, dry_run: bool = False) -> str:
    """The sentence with which the API server refuses an object; acceptance fails."""
    try:
        made = cluster.create(manifest, dry_run=dry_run)
    except ApiError as error:
        return error.message
    raise AssertionError(f"accepted: {json.dumps(made, indent=1)}")


def failures(cluster: Cluster, namespace: str, *, text: str) -> list[str]:
    """The messages of events in which a controller says that it could not create a pod."""
    events = cluster.list("Event", namespace)
    return [event["message"] for event in events if text in (event.get("message") or "")]
