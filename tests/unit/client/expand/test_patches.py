"""runtimePatches: strategic merge as Trainer 2.3 applies it, and what is refused or dropped."""

import pytest

from builders import make_container, make_runtime, make_trainer_job
from tfadmit_client.expand import merge, patches
from tfadmit_client.expand.remark import Remark

PATH = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"


def make_template(*containers, **pod_spec):
    ps, node = make_trainer_job("ps", step=None), make_trainer_job()
    spec = {"containers": list(containers) or [make_container(), make_container("sidecar")]}
    node["template"]["spec"]["template"]["spec"] = spec | pod_spec
    return make_runtime(ps, node)["spec"]["template"]


def apply(template, *, job="node", job_metadata=None, pod=None, metadata=None):
    replicated = {"name": job, "template": {"spec": {"template": pod or {}}}}
    if job_metadata:
        replicated["template"]["metadata"] = job_metadata
    change = {"spec": {"replicatedJobs": [replicated]}}
    if metadata:
        change["metadata"] = metadata
    patch = {"manager": "tests.dev/x", "trainingRuntimeSpec": {"template": change}}
    remarks: list[Remark] = []
    result = patches.apply(template, {"spec": {"runtimePatches": [patch]}}, remarks)
    return result, [remark.text for remark in remarks], any(item.refused for item in remarks)


def node(template):
    (job,) = (item for item in template["spec"]["replicatedJobs"] if item["name"] == "node")
    return job["template"]["spec"]["template"]


def test_metadata_of_jobset_job_and_pod_are_merged():
    result, remarks, _ = apply(
        make_template(),
        metadata={"annotations": {"tfadmit.dev/replicas": "ps=4"}},
        job_metadata={"labels": {"a": "1"}},
        pod={"metadata": {"annotations": {"b": "2"}}},
    )
    (_, job) = result["spec"]["replicatedJobs"]
    assert result["metadata"]["annotations"] == {"tfadmit.dev/replicas": "ps=4"}
    assert job["template"]["metadata"]["labels"] == {
        "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
        "a": "1",
    }
    assert node(result)["metadata"]["annotations"] == {"b": "2"}
    assert remarks == []


def test_the_order_of_the_runtime_s_jobs_stays():
    result, _, _ = apply(make_template())
    assert [job["name"] for job in result["spec"]["replicatedJobs"]] == ["ps", "node"]


def test_maps_are_merged_and_plain_lists_are_replaced():
    template = make_template(nodeSelector={"a": "1"}, tolerations=[{"key": "old"}])
    spec = {"nodeSelector": {"b": "2"}, "tolerations": [{"key": "new"}]}
    result, _, _ = apply(template, pod={"spec": spec})
    assert node(result)["spec"]["nodeSelector"] == {"a": "1", "b": "2"}
    assert node(result)["spec"]["tolerations"] == [{"key": "new"}]


def test_containers_are_merged_by_name_and_keep_their_order():
    env = [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]
    template = make_template(
        make_container(), make_container("sidecar", env=[{"name": "A", "value": "0"}])
    )
    changed = [{"name": "sidecar", "env": env}]
    result, remarks, _ = apply(template, pod={"spec": {"containers": changed}})
    first, second = node(result)["spec"]["containers"]
    assert first == make_container()
    assert second == make_container("sidecar", env=env)
    assert remarks == []


def test_volumes_are_merged_by_name_and_mounts_by_path():
    template = make_template(
        make_container(volumeMounts=[{"name": "shm", "mountPath": "/dev/shm"}]),
        volumes=[{"name": "shm", "emptyDir": {}}],
    )
    spec = {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    }
    result, _, _ = apply(template, pod={"spec": spec})
    # as in kubectl patch: what is new comes first
    assert [item["name"] for item in node(result)["spec"]["volumes"]] == ["data", "shm"]
    mounts = node(result)["spec"]["containers"][0]["volumeMounts"]
    assert [item["mountPath"] for item in mounts] == ["/data", "/dev/shm"]


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "xb", "xabc"),
        ("abc", "bx", "abxc"),
        ("", "xy", "xy"),
    ],
)
def test_the_order_of_a_merged_list_is_kubernetes_own(original, patch, expected):
    """The expectations follow mergeSortedSlice of k8s.io/apimachinery, worked out by hand."""
    before = [{"name": letter} for letter in original]
    change = [{"name": letter} for letter in patch]
    merged = merge.strategic(before, change, field="env")
    assert "".join(item["name"] for item in merged) == expected


def test_what_trainer_s_patches_have_no_field_for_is_dropped_and_said():
    spec = {"containers": [{"name": "sidecar", "image": "mine"}], "hostNetwork": True}
    result, remarks, refused = apply(make_template(), pod={"spec": spec})
    assert "hostNetwork" not in node(result)["spec"]
    assert [text.partition(": ")[0] for text in remarks] == [
        f"{PATH}.template.spec.template.spec.containers[0].image is not applied",
        f"{PATH}.template.spec.template.spec.hostNetwork is not applied",
    ]
    assert not refused


@pytest.mark.parametrize(
    ("job", "spec", "text"),
    [
        (
            "node",
            {"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}]},
            (
                "spec.runtimePatches[0], replicated job 'node': env of the container 'node' "
                "cannot be patched: write it in spec.trainer.env"
            ),
        ),
    ],
)
def test_what_trainer_refuses_is_said(job, spec, text):
    _, remarks, refused = apply(make_template(), job=job, pod={"spec": spec})
    assert remarks == [f"Trainer refuses the TrainJob: {text}"]
    assert refused
