"""The wire, pinned: environments with literal names, a folder per contract version.

Files are only ever added. What an older webhook injected must stay readable by the library of
today; what the webhook injects today must be what the folder of its version says.
"""

import json
import pathlib

import pytest

from tfadmit_trainer import contract, encoding

HERE = pathlib.Path(__file__).parent / "contract"
ALL = sorted(HERE.glob("v*/*.json"))
CURRENT = sorted(HERE.glob(f"v{contract.VERSION}/*.json"))


def read(path):
    document = json.loads(path.read_text())
    task = document["task"]
    cluster = contract.Cluster(**{role: tuple(p) for role, p in task["cluster"].items()})
    return contract.Task(cluster=cluster, role=task["role"], index=task["index"]), document


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.stem)
def test_what_is_injected_today_is_what_the_contract_says(path):
    task, document = read(path)
    env = encoding.environment(task, max_inline_bytes=document["maxInlineBytes"])
    assert list(env.items()) == list(document["environment"].items())


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_environment_ever_injected_is_still_read(path):
    task, document = read(path)
    found = encoding.task_from(document["environment"])
    assert found == contract.Task(
        cluster=task.cluster.seen_by(task.role), role=task.role, index=task.index
    )


def test_the_labels_and_annotations_are_these():
    assert {
        name: value
        for name, value in vars(contract).items()
        if name.endswith(("_LABEL", "_ANNOTATION"))
    } == {
        "FRAMEWORK_LABEL": "trainer.kubeflow.org/framework",
        "ROLE_LABEL": "tfadmit.dev/role",
        "NUM_WORKERS_LABEL": "tfadmit.dev/num-workers",
        "INJECT_ANNOTATION": "tfadmit.dev/inject",
        "CONTAINERS_ANNOTATION": "tfadmit.dev/containers",
        "PORT_ANNOTATION": "tfadmit.dev/port",
        "NETWORK_ANNOTATION": "tfadmit.dev/network",
        "ADDRESS_ANNOTATION": "tfadmit.dev/address",
        "CLUSTER_ANNOTATION": "tfadmit.dev/cluster",
        "REPLICAS_ANNOTATION": "tfadmit.dev/replicas",
        "QUEUE_LABEL": "kueue.x-k8s.io/queue-name",
        "STATUS_ANNOTATION": "tfadmit.dev/status",
        "NETWORKS_ANNOTATION": "k8s.v1.cni.cncf.io/networks",
        "JOBSET_NAME_LABEL": "jobset.sigs.k8s.io/jobset-name",
        "JOBSET_UID_ANNOTATION": "jobset.sigs.k8s.io/jobset-uid",
        "REPLICATED_JOB_LABEL": "jobset.sigs.k8s.io/replicatedjob-name",
        "JOB_INDEX_LABEL": "jobset.sigs.k8s.io/job-index",
        "RESTART_ATTEMPT_ANNOTATION": "jobset.sigs.k8s.io/restart-attempt",
        "COMPLETION_INDEX_ANNOTATION": "batch.kubernetes.io/job-completion-index",
        "ANCESTOR_LABEL": "trainer.kubeflow.org/trainjob-ancestor-step",
        "MIRROR_ANNOTATION": "kubernetes.io/config.mirror",
        "DATA_ANNOTATION": "tfadmit.dev/data",
        "OUTPUT_ANNOTATION": "tfadmit.dev/output",
        "STORE_SECRET_ANNOTATION": "tfadmit.dev/store-secret",
        "CODE_ANNOTATION": "tfadmit.dev/code",
        "COMMAND_ANNOTATION": "tfadmit.dev/command",
        "SOURCE_ANNOTATION": "tfadmit.dev/source",
        "OPTIONS_ANNOTATION": "tfadmit.dev/options",
        "DEFAULT_IMAGE_ANNOTATION": "tfadmit.dev/default-image",
        "DEFAULT_CPU_ANNOTATION": "tfadmit.dev/default-cpu",
        "DEFAULT_MEMORY_ANNOTATION": "tfadmit.dev/default-memory",
        "DEFAULT_GPU_ANNOTATION": "tfadmit.dev/default-gpu",
        "DEFAULT_OUTPUT_ANNOTATION": "tfadmit.dev/default-output",
        "DEFAULT_STORE_SECRET_ANNOTATION": "tfadmit.dev/default-store-secret",
        "GPU_TYPE_LABEL_ANNOTATION": "tfadmit.dev/gpu-type-label",
    }
