"""The shipped runtimes and examples: what users apply or copy."""

from __future__ import annotations

import ast
import copy

import jsonschema
import pytest

from harness import binaries
from manifests import crd_schema, shipped

FRAMEWORK = "trainer.kubeflow.org/framework"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
FILES = [*shipped.RUNTIMES, *shipped.EXAMPLES]
CUSTOM = [path for path in FILES if path.stem != "job-indexed"]  # that one is Kubernetes' own
CRDS = {
    "ClusterTrainingRuntime": (
        "trainer/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
        "v1alpha1",
    ),
    "TrainJob": ("trainer/crds/trainer.kubeflow.org_trainjobs.yaml", "v1alpha1"),
    "JobSet": ("jobset/crds/jobset.x-k8s.io_jobsets.yaml", "v1alpha2"),
}


def jobset_spec(runtime):
    return runtime["spec"]["template"]["spec"]


def only_job(runtime):
    (job,) = jobset_spec(runtime)["replicatedJobs"]
    return job


def pod_template(runtime):
    return only_job(runtime)["template"]["spec"]["template"]


def only_container(runtime):
    (container,) = pod_template(runtime)["spec"]["containers"]
    return container


# Those with one job; the others have their tests in test_runtimes.py.
DISTRIBUTED = [path for path in shipped.RUNTIMES if "distributed" in path.stem]


@pytest.fixture(params=DISTRIBUTED, ids=lambda path: path.stem)
def runtime(request):
    (found,) = shipped.read(request.param)
    return found


@pytest.fixture
def distributed():
    (found,) = shipped.read("runtimes/tensorflow-distributed.yaml")
    return found


@pytest.fixture
def infiniband():
    (found,) = shipped.read("runtimes/tensorflow-distributed-infiniband.yaml")
    return found


def test_exactly_these_files_are_shipped():
    assert [path.name for path in FILES] == [
        "tensorflow-distributed-infiniband.yaml",
        "tensorflow-distributed.yaml",
        "tensorflow-ps.yaml",
        "tensorflow-single.yaml",
        "job-indexed.yaml",
        "jobset-roles.yaml",
        "runtime-refused.yaml",
        "trainjob-cifar10.yaml",
        "trainjob-smallest.yaml",
    ]


@pytest.mark.built_schemas
@pytest.mark.parametrize("path", CUSTOM, ids=lambda path: path.stem)
def test_is_valid_by_the_schema_of_its_custom_resource(path):
    manifests = binaries.entry() / "manifests"
    if not manifests.is_dir():
        pytest.skip(f"no upstream CRDs in {manifests}; the cluster layer builds them")
    for item in shipped.parse(path.read_text()):
        crd, version = CRDS[item["kind"]]
        jsonschema.validate(item, crd_schema.load(manifests / crd, version=version))


def test_a_runtime_is_named_as_its_file(runtime, request):
    path = request.node.callspec.params["runtime"]
    assert (runtime["kind"], runtime["metadata"]["name"]) == ("ClusterTrainingRuntime", path.stem)


def test_users_label_the_runtime_and_the_webhook_does_the_rest(runtime):
    assert runtime["metadata"]["labels"] == {FRAMEWORK: "tensorflow"}
    assert FRAMEWORK not in pod_template(runtime).get("metadata", {}).get("labels", {})


def test_the_sdk_can_list_run_and_read_it(runtime):
    """A policy, one job `node` of the trainer step, one container `node` with an image."""
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 1}
    job = only_job(runtime)
    assert job["name"] == "node"
    assert job["template"]["metadata"]["labels"] == {STEP: "trainer"}
    container = only_container(runtime)
    assert container["name"] == "node"
    assert container["image"] == "nvcr.io/nvidia/tensorflow:24.03-tf2-py3"
    limits = container.get("resources", {}).get("limits", {})
    assert not limits or {"cpu", "nvidia.com/gpu"} & set(limits)


def test_every_peer_can_be_resolved_before_it_is_ready(runtime):
    assert jobset_spec(runtime)["network"] == {"publishNotReadyAddresses": True}


def test_the_environment_is_the_one_that_users_override(runtime):
    assert only_container(runtime)["env"] == [
        {"name": "TF_WORKER_PORT", "value": "12345"},
        {"name": "EPOCHS", "value": "10"},
        {"name": "NCCL_DEBUG", "value": "INFO"},
    ]


def test_failures_follow_the_recipe_that_was_proved_on_a_cluster(runtime):
    job = only_job(runtime)["template"]["spec"]
    assert pod_template(runtime)["spec"]["restartPolicy"] == "Never"
    assert job["backoffLimit"] == 0
    assert job["podFailurePolicy"]["rules"] == [
        {
            "action": "FailJob",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        },
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "node", "operator": "In", "values": [1, 2, 126, 127]},
        },
        # Of any container, as the template has no tfadmit-fetch that could be named.
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}},
    ]
    assert jobset_spec(runtime)["failurePolicy"] == {
        "maxRestarts": 2,
        "rules": [
            {
                "name": "disruption",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": ["FailJob rule at index 0"],
            },
            {
                "name": "program",
                "action": "FailJobSet",
                "onJobFailureReasons": ["PodFailurePolicy"],
            },
        ],
    }


def test_the_default_runtime_asks_for_no_resources_and_no_privilege(distributed):
    assert not {"resources", "securityContext"} & set(only_container(distributed))


def test_infiniband_differs_by_its_resources_and_capability_only(distributed, infiniband):
    extended = {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "2"}
    stripped = copy.deepcopy(infiniband)
    container = only_container(stripped)
    assert container.pop("resources") == {"requests": extended, "limits": extended}
    assert container.pop("securityContext") == {"capabilities": {"add": ["IPC_LOCK"]}}
    stripped["metadata"]["name"] = "tensorflow-distributed"
    assert stripped == distributed


def test_the_refused_runtime_is_wrong_in_one_field_only():
    (refused,) = shipped.read("examples/runtime-refused.yaml")
    assert refused["metadata"]["labels"] == {FRAMEWORK: "tensorflow"}
    assert jobset_spec(refused)["network"] == {"publishNotReadyAddresses": False}
    assert only_job(refused)["template"]["metadata"]["labels"] == {STEP: "trainer"}
    assert refused["spec"]["mlPolicy"] == {"numNodes": 1}


@pytest.mark.parametrize(
    ("name", "nodes"), [("trainjob-cifar10.yaml", 2), ("trainjob-smallest.yaml", 3)]
)
def test_a_trainjob_names_a_shipped_runtime_and_a_number(name, nodes):
    (job,) = shipped.read(f"examples/{name}")
    assert job["spec"]["runtimeRef"] == {"name": "tensorflow-distributed"}
    assert job["spec"]["trainer"]["numNodes"] == nodes
    assert not any(item["name"] == "TF_CONFIG" for item in job["spec"]["trainer"].get("env", []))


def test_the_smallest_trainjob_prints_what_it_was_given():
    (job,) = shipped.read("examples/trainjob-smallest.yaml")
    assert job["spec"]["trainer"]["command"] == ["echo", "$(TF_CONFIG)"]


def test_the_program_of_the_cifar10_example_reaches_python_as_it_is_written():
    (job,) = shipped.read("examples/trainjob-cifar10.yaml")
    trainer = job["spec"]["trainer"]
    assert trainer["env"] == [{"name": "EPOCHS", "value": "3"}]
    assert trainer["command"] == ["python", "-u", "-c"]
    (program,) = trainer["args"]
    ast.parse(program)
    # Kubernetes would expand it before Python sees it.
    assert "$(" not in program
    # The cluster is fixed when TensorFlow is imported.
    assert program.index("TF_CONFIG") < program.index("import tensorflow")


def test_the_jobset_has_all_roles_and_ends_with_the_chief():
    (jobset,) = shipped.read("examples/jobset-roles.yaml")
    spec = jobset["spec"]
    assert [job["name"] for job in spec["replicatedJobs"]] == ["chief", "worker", "ps", "evaluator"]
    assert spec["network"] == {"publishNotReadyAddresses": True}
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["chief"]}
    for job in spec["replicatedJobs"]:
        template = job["template"]["spec"]["template"]
        assert template["metadata"]["labels"] == {FRAMEWORK: "tensorflow"}
        assert template["spec"]["restartPolicy"] == "Never"


def test_the_plain_job_is_indexed_and_its_pods_get_names():
    objects = shipped.read("examples/job-indexed.yaml")
    service, job = shipped.one(objects, "Service"), shipped.one(objects, "Job")
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["parallelism"] == spec["completions"] == 3
    assert spec["template"]["metadata"]["labels"] == {FRAMEWORK: "tensorflow"}
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"batch.kubernetes.io/job-name": job["metadata"]["name"]},
    }
