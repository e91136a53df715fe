"""The test cluster itself, without tfadmit: what upstream really creates from a TrainJob."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness import binaries, environment
from harness import cluster as harness_cluster
from harness.api import ApiError
from harness.cluster import Cluster
from harness.controlplane import ControlPlane

_OWN_CLUSTER = not (os.environ.get(environment.NAMED) or os.environ.get("KUBEBUILDER_ASSETS"))

own_cluster_only = pytest.mark.skipif(
    not _OWN_CLUSTER, reason="the environment names other programs or another cluster"
)


@pytest.fixture
def runtime(cluster: Cluster, namespace: str):
    """A runtime for this test alone: cluster-scoped, so named after the test's namespace."""
    pod = {"containers": [{"name": "node", "image": "example.com/none"}]}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "template": {"metadata": {"labels": {"from": "pod-template"}}, "spec": pod},
            },
        },
    }
    name = f"plain-{namespace}"
    manifest = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": name,
            "labels": {"trainer.kubeflow.org/framework": "tensorflow"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {
                "metadata": {"labels": {"from": "jobset-template"}},
                "spec": {"network": {"publishNotReadyAddresses": True}, "replicatedJobs": [job]},
            },
        },
    }
    cluster.apply(manifest)
    yield name
    cluster.delete("ClusterTrainingRuntime", name)


@pytest.fixture
def trainjob(cluster: Cluster, namespace: str, runtime: str) -> str:
    """The TrainJob `mnist` on three nodes."""
    cluster.apply(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "mnist", "namespace": namespace},
            "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 3}},
        }
    )
    return "mnist"


def pods_of(cluster: Cluster, namespace: str, *, count: int):
    pods = cluster.wait(
        lambda: cluster.list("Pod", namespace),
        until=lambda pods: len(pods) == count,
        what=f"{count} pods in {namespace}",
    )
    return sorted(pods, key=lambda pod: pod["spec"]["hostname"])


@own_cluster_only
def test_the_api_server_reports_its_version(cluster: Cluster):
    assert cluster.api.request("GET", "/version")["gitVersion"] == binaries.VERSION


def test_a_trainjob_becomes_a_jobset_a_job_and_a_headless_service(
    cluster: Cluster, namespace: str, trainjob: str
):
    pods_of(cluster, namespace, count=3)

    jobset = cluster.get("JobSet", trainjob, namespace)
    assert [job["name"] for job in jobset["spec"]["replicatedJobs"]] == ["node"]
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] == 3
    assert jobset["metadata"]["labels"]["from"] == "jobset-template"

    job = cluster.get("Job", "mnist-node-0", namespace)
    assert job["spec"]["completionMode"] == "Indexed"

    service = cluster.get("Service", trainjob, namespace)
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True


def test_its_pods_carry_what_the_webhook_reads(cluster: Cluster, namespace: str, trainjob: str):
    pods = pods_of(cluster, namespace, count=3)

    assert [pod["spec"]["hostname"] for pod in pods] == [f"mnist-node-0-{i}" for i in range(3)]
    for index, pod in enumerate(pods):
        metadata = pod["metadata"]
        assert metadata["generateName"] == f"mnist-node-0-{index}-"
        assert pod["spec"]["subdomain"] == "mnist"
        for names in (metadata["labels"], metadata["annotations"]):
            assert names["batch.kubernetes.io/job-completion-index"] == str(index)
            assert names["jobset.sigs.k8s.io/jobset-name"] == "mnist"
            assert names["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
            assert names["jobset.sigs.k8s.io/job-index"] == "0"
        assert metadata["annotations"]["jobset.sigs.k8s.io/jobset-uid"]
        assert [owner["kind"] for owner in metadata["ownerReferences"]] == ["Job"]
        assert metadata["labels"]["from"] == "pod-template"
        # The label of the runtime itself does not reach its pods: that is the webhook's work.
        assert "trainer.kubeflow.org/framework" not in metadata["labels"]


def test_an_absent_object_is_an_api_error_and_is_waited_for(cluster: Cluster, namespace: str):
    with pytest.raises(ApiError, match="404 NotFound"):
        cluster.get("Pod", "nobody", namespace)
    with pytest.raises(AssertionError, match=r"(?s)a pod: not within 0.2 s; last seen: 404"):
        cluster.wait(lambda: cluster.get("Pod", "nobody", namespace), timeout=0.2, what="a pod")


def test_a_dry_run_writes_nothing(cluster: Cluster, namespace: str):
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "dry", "namespace": namespace},
    }
    assert cluster.apply(manifest, dry_run=True)[0]["metadata"]["uid"]
    with pytest.raises(ApiError, match="404"):
        cluster.get("ConfigMap", "dry", namespace)


def test_a_program_can_be_a_service_account(cluster: Cluster, namespace: str):
    kubeconfig = cluster.kubeconfig_of("default", namespace)
    who = cluster.kubectl("--kubeconfig", str(kubeconfig), "auth", "whoami")
    assert f"system:serviceaccount:{namespace}:default" in who.stdout


@own_cluster_only
def test_a_cluster_that_the_user_names_is_used(cluster: Cluster, namespace: str, tmp_path: Path):
    with environment.named_cluster(
        kubeconfig=cluster.kubeconfig, webhook_host="192.0.2.1", directory=tmp_path
    ) as named:
        assert named.get("Namespace", namespace)["metadata"]["name"] == namespace
        assert named.webhook_host == "192.0.2.1"


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
def test_trainer_refuses_a_runtime_that_it_does_not_know_in_these_words(
    cluster: Cluster, namespace: str, kind: str
):
    """For them `Cluster` waits after it has applied a runtime; other words it would not see."""
    said = cluster.tried(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "early", "namespace": namespace},
            "spec": {"runtimeRef": {"kind": kind, "name": "unheard-of"}},
        }
    )
    assert isinstance(said, str)
    assert harness_cluster.NOT_KNOWN in said


@own_cluster_only
def test_a_bare_control_plane_lacks_the_controllers_and_leaves_nothing_behind(
    cluster: Cluster, tmp_path: Path
):
    plane = ControlPlane(binaries=binaries.find(), directory=tmp_path / "plane")
    plane.start()
    processes = list(plane.processes)
    pids = [process.pid for process in processes]
    try:
        named = environment.named_cluster(
            kubeconfig=plane.kubeconfig, webhook_host="127.0.0.1", directory=tmp_path / "named"
        )
        missing = "lacks the JobSet controller and Kubeflow Trainer v2"
        with pytest.raises(environment.NotInstalledError, match=missing), named:
            pass
    finally:
        plane.stop()
    assert len(pids) == 3
    assert not any(process.running for process in processes)
    assert [pid for pid in pids if Path("/proc", str(pid)).exists()] == []


@own_cluster_only
def test_a_control_plane_that_cannot_start_leaves_nothing(cluster: Cluster, tmp_path: Path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no database today\nexit 3\n")
    broken.chmod(0o755)
    found = binaries.find()
    plane = ControlPlane(
        binaries=binaries.Binaries(**{**vars(found), "kube_apiserver": broken}), directory=tmp_path
    )
    with pytest.raises(RuntimeError, match=r"(?s)code 3.*command: .*broken.*no database today"):
        plane.start()
    assert not any(process.running for process in plane.processes)
