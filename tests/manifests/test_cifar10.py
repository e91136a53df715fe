"""The CIFAR-10 examples: two files to apply as they are, and the same without InfiniBand."""

from __future__ import annotations

import ast
import copy
import os
import re
import subprocess
import sys

import jsonschema
import pytest

from harness import binaries, gang
from manifests import crd_schema, shipped

FOLDER = shipped.DEPLOY / "examples/cifar10"
CUSTOM = "examples/cifar10/runtime/tensorflow-custom-runtime.yaml"
VOLCANO = "examples/cifar10/volcano/tensorflow-volcano-trainjob-integration.yaml"
EXTENDED = {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "2"}
GPUS = {"nvidia.com/gpu": "8"}
SHM = {"name": "shm", "emptyDir": {"medium": "Memory"}}
DATA = {"name": "cifar-data", "hostPath": {"path": "/data/cifar10", "type": "Directory"}}
DATA_MOUNT = {"name": "cifar-data", "mountPath": "/workspace/data", "readOnly": True}


def jobset_spec(runtime):
    return runtime["spec"]["template"]["spec"]


def pod_spec(runtime):
    (job,) = jobset_spec(runtime)["replicatedJobs"]
    return job["template"]["spec"]["template"]["spec"]


def node(runtime):
    (container,) = pod_spec(runtime)["containers"]
    return container


def volume(runtime, name):
    (found,) = (v for v in pod_spec(runtime)["volumes"] if v["name"] == name)
    return found


def overlay(folder):
    done = shipped.kustomize(FOLDER / folder)
    assert (done.returncode, done.stderr) == (0, "")
    return shipped.parse(done.stdout)


def in_order(objects):
    return sorted(objects, key=lambda item: (item["kind"], item["metadata"]["name"]))


@pytest.fixture
def generic():
    (found,) = shipped.read("runtimes/tensorflow-distributed.yaml")
    return found


@pytest.fixture
def custom():
    (found,) = shipped.read(CUSTOM)
    return found


@pytest.fixture
def everything():
    return shipped.read(VOLCANO)


@pytest.fixture
def volcano(everything):
    return shipped.one(everything, "ClusterTrainingRuntime")


@pytest.fixture
def script(everything):
    return shipped.one(everything, "ConfigMap")["data"]["train.py"]


def test_the_custom_runtime_is_the_generic_one_and_cifar10_and_infiniband(generic, custom):
    stripped = copy.deepcopy(custom)
    container = node(stripped)
    assert container.pop("command") == ["python", "-m", "tfadmit_trainer.examples.cifar10"]
    assert container.pop("resources") == {"requests": EXTENDED, "limits": EXTENDED}
    assert container.pop("securityContext") == {
        "runAsUser": 0,
        "capabilities": {"add": ["IPC_LOCK"]},
    }
    assert container["image"] == "tfadmit/training:0.1.0"
    container["image"] = node(generic)["image"]
    container["volumeMounts"].remove(DATA_MOUNT)
    pod_spec(stripped)["volumes"].remove(DATA)
    assert stripped == generic


def test_the_volcano_runtime_is_the_generic_one_and_gang_scheduling(generic, volcano):
    stripped = copy.deepcopy(volcano)
    assert stripped["metadata"]["name"] == "tensorflow-distributed-volcano"
    stripped["metadata"]["name"] = "tensorflow-distributed"
    assert stripped["spec"].pop("podGroupPolicy") == {
        "volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 1}}
    }
    assert stripped["spec"]["template"].pop("metadata") == {
        "annotations": {"scheduling.volcano.sh/queue-name": "tensorflow"}
    }
    assert pod_spec(stripped).pop("schedulerName") == "volcano"
    container = node(stripped)
    assert container.pop("command") == ["python", "-u", "/workspace/scripts/train.py"]
    assert container.pop("resources") == {"requests": EXTENDED, "limits": EXTENDED}
    assert container.pop("securityContext") == {"capabilities": {"add": ["IPC_LOCK"]}}
    container["volumeMounts"] = node(generic)["volumeMounts"]
    pod_spec(stripped)["volumes"] = [SHM]
    assert stripped == generic


def test_every_task_can_be_resolved_before_it_is_ready(custom, volcano):
    for runtime in (custom, volcano):
        assert jobset_spec(runtime)["network"] == {"publishNotReadyAddresses": True}


def test_what_source_a_names_can_be_overridden_is_there(custom, volcano):
    for runtime in (custom, volcano):
        assert {entry["name"]: entry["value"] for entry in node(runtime)["env"]} == {
            "TF_WORKER_PORT": "12345",
            "EPOCHS": "10",
            "NCCL_DEBUG": "INFO",
        }


def test_no_file_states_the_network(custom, everything):
    """The webhook attaches it to pods that request the adapters, and to no others."""
    assert "k8s.v1.cni.cncf.io/networks" not in str([custom, everything])


def test_one_file_has_everything_in_an_order_that_works(everything):
    assert [(item["kind"], item["metadata"]["name"]) for item in everything] == [
        ("ConfigMap", "tf-distributed-training"),
        ("Queue", "tensorflow"),
        ("ClusterTrainingRuntime", "tensorflow-distributed-volcano"),
        ("TrainJob", "tf-distributed-training"),
    ]
    # `kubectl apply -n` decides where.
    assert not any("namespace" in item["metadata"] for item in everything)


def test_the_names_inside_of_the_file_meet(everything, volcano):
    queue = shipped.one(everything, "Queue")["metadata"]["name"]
    annotations = volcano["spec"]["template"]["metadata"]["annotations"]
    assert annotations["scheduling.volcano.sh/queue-name"] == queue
    script = shipped.one(everything, "ConfigMap")
    found = volume(volcano, "script")["configMap"]
    assert found == {"name": script["metadata"]["name"], "optional": True}
    mounts = {m["name"]: m["mountPath"] for m in node(volcano)["volumeMounts"]}
    (name,) = script["data"]
    assert node(volcano)["command"][-1] == f"{mounts['script']}/{name}"
    assert volume(volcano, "cifar-data") == DATA
    assert DATA_MOUNT in node(volcano)["volumeMounts"]


def test_the_trainjob_is_two_nodes_of_eight_gpus(everything):
    assert shipped.one(everything, "TrainJob")["spec"] == {
        "runtimeRef": {"name": "tensorflow-distributed-volcano"},
        "trainer": {"numNodes": 2, "resourcesPerNode": {"requests": GPUS, "limits": GPUS}},
    }


@pytest.mark.parametrize(("folder", "file"), [("runtime", CUSTOM), ("volcano", VOLCANO)])
def test_rendering_changes_nothing(folder, file):
    assert in_order(overlay(folder)) == in_order(shipped.read(file))


@pytest.mark.parametrize(
    ("folder", "file"),
    [("runtime-without-infiniband", CUSTOM), ("volcano-without-infiniband", VOLCANO)],
)
def test_without_infiniband_only_the_adapters_and_their_capability_go(folder, file):
    expected = shipped.read(file)
    container = node(shipped.one(expected, "ClusterTrainingRuntime"))
    container["resources"] = {"requests": GPUS, "limits": GPUS}
    del container["securityContext"]
    assert in_order(overlay(folder)) == in_order(expected)


def test_an_overlay_can_name_the_image_of_ones_own_registry(tmp_path):
    """What deploy/README.md tells users to do; kustomize must find the image in a runtime."""
    base = os.path.relpath(FOLDER / "runtime-without-infiniband", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [{base}]\n"
        "images: [{name: tfadmit/training, newName: registry.example.com/training, newTag: v2}]\n"
    )
    done = shipped.kustomize(tmp_path)
    assert done.returncode == 0, done.stderr
    (runtime,) = shipped.parse(done.stdout)
    assert node(runtime)["image"] == "registry.example.com/training:v2"


@pytest.mark.built_schemas
@pytest.mark.parametrize("file", [CUSTOM, VOLCANO])
def test_is_valid_by_the_schemas_of_its_custom_resources(file):
    upstream, schedulers = binaries.entry() / "manifests", gang.entry() / "crds"
    if not (upstream.is_dir() and schedulers.is_dir()):
        pytest.skip("no upstream CRDs yet; the cluster layer builds them")
    trainer = upstream / "trainer/crds"
    crds = {
        "ClusterTrainingRuntime": (
            trainer / "trainer.kubeflow.org_clustertrainingruntimes.yaml",
            "v1alpha1",
        ),
        "TrainJob": (trainer / "trainer.kubeflow.org_trainjobs.yaml", "v1alpha1"),
        "Queue": (schedulers / "scheduling.volcano.sh_queues.yaml", "v1beta1"),
    }
    for item in shipped.read(file):
        if item["kind"] != "ConfigMap":
            path, version = crds[item["kind"]]
            jsonschema.validate(item, crd_schema.load(path, version=version))


# --- the script in the ConfigMap ---------------------------------------------------------------


def test_the_script_is_python_of_the_images_version_and_fits_a_screen(script):
    ast.parse(script, feature_version=(3, 10))
    assert max(map(len, script.splitlines())) <= 100
    assert "\t" not in script


def test_the_script_prepares_before_tensorflow_is_imported(script):
    ordered = ["from tfadmit_trainer import setup", "wait_for_names()\n\n", "import tensorflow"]
    places = [script.index(text) for text in ordered]
    assert places == sorted(places)
    assert script.count("import tensorflow") == 1


def test_the_script_downloads_nothing(script):
    assert not any(word in script for word in ("load_data(", "urllib", "http"))


def test_after_a_lost_peer_the_script_ends_with_a_code_that_starts_all_again(script, volcano):
    (job,) = jobset_spec(volcano)["replicatedJobs"]
    faults = job["template"]["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"]
    codes = [int(code) for code in re.findall(r"exit\((\d+)\)", script)]
    assert codes == [75, 76]
    assert not set(codes) & set(faults)


def run(script, **environ):
    """The script where neither TensorFlow nor tfadmit is; `-S` leaves out installed packages."""
    command = [sys.executable, "-S", "-c", script]
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=30
    )


def test_the_script_says_what_is_missing_without_the_data(script, tmp_path):
    done = run(script, CIFAR10_DIR=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert "volume cifar-data must hold the folder cifar-10-batches-py" in done.stderr


def test_the_script_never_trains_alone_because_the_cluster_was_too_long(script, tmp_path):
    done = run(script, CIFAR10_DIR=str(tmp_path), TFADMIT_CLUSTER='{"worker":["w-{0..9999}:1"]}')
    assert done.returncode == 1
    assert "too many workers for TF_CONFIG" in done.stderr


# --- the image to train with -------------------------------------------------------------------


@pytest.fixture
def dockerfile():
    text = (shipped.DEPLOY / "images/training/Dockerfile").read_text().replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and line[0] != "#"]


def test_the_image_is_nvidias_and_can_be_another(dockerfile, generic):
    assert f"ARG BASE={node(generic)['image']}" == dockerfile[0]
    assert [line for line in dockerfile if line.startswith("FROM ")][-1] == "FROM ${BASE}"


def test_the_image_gets_the_wheel_and_nothing_else(dockerfile):
    final = dockerfile[dockerfile.index("FROM ${BASE}") :]
    (install,) = (line for line in final if "pip install" in line)
    assert "--no-index --no-deps" in install
    assert not any(line.startswith("COPY ") for line in final)


def test_the_image_does_not_run_as_root_and_starts_the_library(dockerfile):
    assert "USER 65532:65532" in dockerfile
    assert dockerfile[-1] == 'ENTRYPOINT ["tfadmit-run", "--"]'


def test_both_images_build_the_wheel_alike(dockerfile):
    text = (shipped.DEPLOY / "images/webhook/Dockerfile").read_text()
    for line in dockerfile[1 : dockerfile.index("FROM ${BASE}")]:
        assert line in text
