"""Options and a runtime to objects: what a plan refuses, and what a TrainJob says."""

import copy
import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tfadmit_client import fault
from tfadmit_client.files import yamlout, yamltext
from tfadmit_client.submit import (
    existing,
    flags,
    objects,
    options,
    plan,
    refusals,
    repeat,
    wish,
    words,
)
from tfadmit_client.submit.objects import Code, Stored
from tfadmit_client.submit.options import Options
from tfadmit_trainer.launcher import handover

RUNTIMES = Path(__file__).parents[4] / "deploy" / "runtimes"
CODE = Code(launcher=b"launcher", archive=b"archive", source='{"commit": "c", "dirty": true}')
COMMAND = ("python", "train.py")


@functools.cache
def parsed(name):
    return yaml.safe_load((RUNTIMES / f"{name}.yaml").read_text())


def shipped(name, **changes):
    content = copy.deepcopy(parsed(name))
    content["metadata"].update(changes)
    return plan.Runtime(kind="ClusterTrainingRuntime", content=content)


def jobs(on):
    return on.content["spec"]["template"]["spec"]["replicatedJobs"]


def container(on, index=0):
    return jobs(on)[index]["template"]["spec"]["template"]["spec"]["containers"][0]


def made(on=None, **said):
    chosen = Options(**{"command": COMMAND, **said})
    planned = plan.make(
        wish.read(chosen, environ={"HERE": "mine"}), on or shipped("tensorflow-distributed")
    )
    found = objects.submission(planned, CODE, name="mnist", namespace="team", said=chosen)
    judged = refusals.judge(found, planned, namespace="team")
    if judged.refused:
        raise fault.ClientError("\n".join(judged.refused))
    return found


def trainer(found):
    return found.trainjob["spec"]["trainer"]


def patched(found, index=0):
    return found.trainjob["spec"]["runtimePatches"][index]["trainingRuntimeSpec"]["template"]


def pod(found, job="node", patch=0):
    (content,) = [
        item for item in patched(found, patch)["spec"]["replicatedJobs"] if item["name"] == job
    ]
    return content["template"]["spec"]["template"]


# --- what a runtime cannot do --------------------------------------------------------------------


def without_policy():
    on = shipped("tensorflow-distributed")
    del on.content["spec"]["mlPolicy"]
    return on


def without_image():
    on = shipped("tensorflow-distributed")
    del container(on)["image"]
    return on


def without_node():
    on = shipped("tensorflow-distributed")
    container(on)["name"] = "tensorflow"
    return on


def with_wrong_default():
    notes = {"tfadmit.dev/default-memory": "16"}
    return shipped("tensorflow-distributed", annotations=notes)


def of_torch():
    return shipped("tensorflow-distributed", labels={"trainer.kubeflow.org/framework": "torch"})


CANNOT: dict[str, Any] = {
    "another framework": (of_torch, {}, "is for torch: tfadmit runs on runtimes with the label"),
    "no container node": (without_node, {}, "has no container 'node'"),
    "no image": (without_image, {}, "has no image of its own: add --image"),
    "no policy": (without_policy, {"cpu": "1"}, "Trainer ignores cpu, memory and GPUs"),
    "wrong default": (with_wrong_default, {}, "annotation tfadmit.dev/default-memory of"),
    "ps without chief": (None, {"ps": "2"}, "--ps (it needs a chief): ClusterTrainingRuntime"),
    "no evaluator": (None, {"evaluator": True}, "--evaluator: ClusterTrainingRuntime"),
    "type of no GPU": (None, {"gpu_type": "A100"}, "no GPU is asked for"),
    "long name": (None, {"workers": "1000"}, ""),
}


@pytest.mark.parametrize("case", [name for name in CANNOT if CANNOT[name][2]])
def test_row_12_what_a_runtime_cannot_do_is_refused_with_the_way_out(case):
    on, said, sentence = CANNOT[case]
    with pytest.raises(fault.ClientError) as caught:
        made(on() if on else None, **said)
    assert sentence in str(caught.value)


def test_a_chief_with_a_program_of_its_own_is_refused():
    on = shipped("tensorflow-ps")
    (chief,) = [job for job in jobs(on) if job["name"] == "chief"]
    chief["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "mine:1"
    with pytest.raises(fault.ClientError, match="runs a program of its own"):
        made(on, ps="1")


@pytest.mark.parametrize(
    ("roles", "name"),
    [
        ({}, "tensorflow-distributed"),
        ({"chief": 0, "ps": 0, "evaluator": 0}, "tensorflow-distributed"),
        ({"chief": 1, "ps": 2, "evaluator": 0}, "tensorflow-ps"),
        ({"chief": 1, "ps": 0, "evaluator": 1}, "tensorflow-ps-evaluator"),
    ],
)
def test_the_runtime_is_the_shipped_one_that_has_the_roles(roles, name):
    assert existing.default_runtime(roles) == name


@given(st.text(alphabet="0123456789.-+einfa _", max_size=12))
def test_a_time_of_a_save_that_is_taken_here_is_taken_by_the_launcher(text):
    name = "TFADMIT_SAVE_TIMEOUT"
    try:
        words.variable(f"{name}={text}", option="--env", environ={})
    except fault.ClientError:
        return
    assert handover.seconds({name: text}) >= 0


# --- in the words of the options -----------------------------------------------------------------


def judged(on, **said):
    chosen = Options(**{"command": COMMAND, **said})
    planned = plan.make(wish.read(chosen, environ={}), on)
    found = objects.submission(planned, CODE, name="mnist", namespace="team", said=chosen)
    return refusals.judge(found, planned, namespace="team")


def test_a_patch_that_leads_nowhere_is_named_as_it_was_written_and_once():
    mount = {"name": "nowhere", "mountPath": "/x"}
    patch = {"containers": [{"name": "node", "volumeMounts": [mount]}]}
    (sentence,) = judged(shipped("tensorflow-distributed"), patch=patch).refused
    assert sentence.startswith("--patch containers[0].volumeMounts[0].name is 'nowhere'")
    assert sentence.endswith("(TFA023)")
    assert "runtimePatches" not in sentence


def test_a_patch_of_several_roles_is_told_once():
    variable = {"name": "TF_CONFIG", "value": "{}"}
    patch = {"initContainers": [{"name": "tfadmit-fetch", "env": [variable]}]}
    found = judged(shipped("tensorflow-ps"), patch=patch)
    sentences = [*found.refused, *found.warnings]
    assert len(set(sentences)) == len(sentences)
    assert all(item.startswith("--patch initContainers[0]") for item in sentences)


def test_a_variable_of_the_webhook_is_named_by_its_option():
    (warning,) = judged(shipped("tensorflow-distributed"), env=["TF_CONFIG={}"]).warnings
    assert warning.startswith("--env TF_CONFIG sets TF_CONFIG: ")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("spec.trainer.numNodes: Invalid value", "--workers: Invalid value"),
        ("a spec.trainer.env[1].name b", "a --env MINE b"),
        ("spec.trainer.resourcesPerNode.limits.memory is", "--memory is"),
        ("spec.trainer.resourcesPerNode.limits[nvidia.com/gpu] is", "--cpu, --memory and --gpu is"),
        ("spec.runtimePatches[7] is", "spec.runtimePatches[7] is"),
        ("spec.trainer.env[99] is", "spec.trainer.env[99] is"),
        ("respec.trainer.image", "respec.trainer.image"),
    ],
)
def test_what_the_cluster_says_of_fields_is_said_of_options(said, expected):
    trainjob = {"spec": {"trainer": {"env": [{"name": "OURS"}, {"name": "MINE"}]}}}
    assert flags.within(said, trainjob) == expected


# --- what a TrainJob says ------------------------------------------------------------------------


def test_row_2_one_number_makes_a_training_distributed():
    one, four = made(workers="1"), made(workers="4")
    assert trainer(one).pop("numNodes") == 1
    assert trainer(four).pop("numNodes") == 4
    for found in (one, four):
        found.trainjob["metadata"]["annotations"].pop("tfadmit.dev/options")
    assert one == four


def test_without_a_number_the_runtime_decides():
    assert "numNodes" not in trainer(made())


def test_row_3_what_is_not_named_is_not_there_and_ps_bring_a_chief():
    on = shipped("tensorflow-ps")
    chief, *_ = jobs(on)
    jobs(on).append({**chief, "name": "evaluator"})
    found = made(on, ps="2")
    assert patched(found)["metadata"]["annotations"] == {
        "tfadmit.dev/replicas": "chief=1,ps=2,evaluator=0"
    }
    assert [item["name"] for item in patched(found)["spec"]["replicatedJobs"]] == [
        "chief", "node", "ps",
    ]  # fmt: skip
    assert "metadata" not in patched(made(on))


def test_row_7_inputs_and_results_are_said_to_the_webhook_and_to_the_launcher():
    notes = {"tfadmit.dev/default-store-secret": "store"}
    on = shipped("tensorflow-distributed", annotations=notes)
    found = made(
        on, data=("train=s3://bucket/train", "pvc://claim/path"), output="s3://bucket/results/"
    )
    said = pod(found)["metadata"]["annotations"]
    assert said["tfadmit.dev/data"] == "train=s3://bucket/train\ndata=pvc://claim/path"
    assert said["tfadmit.dev/output"] == "s3://bucket/results"
    assert said["tfadmit.dev/store-secret"] == "store"
    env = {item["name"]: item["value"] for item in trainer(found)["env"]}
    assert env["TFADMIT_INPUTS"] == "train,data"
    assert env["TFADMIT_OUTPUT_URI"] == "s3://bucket/results/mnist"


def test_row_8_no_gpu_by_default_and_requests_are_limits():
    wanted = {"cpu": "2", "memory": "4Gi"}
    assert trainer(made(cpu="2", memory="4Gi"))["resourcesPerNode"] == {
        "requests": wanted,
        "limits": wanted,
    }
    assert "resourcesPerNode" not in trainer(made())
    assert trainer(made(gpu="amd.com/gpu=2"))["resourcesPerNode"]["limits"] == {"amd.com/gpu": "2"}
    assert "resourcesPerNode" not in trainer(made(gpu="0"))


def test_memory_alone_is_not_limited_because_the_sdk_could_not_list_any_job():
    assert trainer(made(memory="4Gi"))["resourcesPerNode"] == {"requests": {"memory": "4Gi"}}


def test_row_10_a_queue_is_kueues_or_volcanos():
    assert made(queue="team").trainjob["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    gang = shipped("tensorflow-distributed")
    gang.content["spec"]["podGroupPolicy"] = {"volcano": {}}
    found = made(gang, queue="team")
    assert "kueue.x-k8s.io/queue-name" not in found.trainjob["metadata"]["labels"]
    assert patched(found)["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "team"}


def test_the_label_of_gpu_types_is_the_users_or_the_sites():
    notes = {"tfadmit.dev/gpu-type-label": "example.com/gpu"}
    on = shipped("tensorflow-distributed", annotations=notes)
    for said, label in (
        ("a,b", "example.com/gpu"),
        ("mine.example.com/x=a,b", "mine.example.com/x"),
    ):
        affinity = pod(made(on, gpu="1", gpu_type=said))["spec"]["affinity"]["nodeAffinity"]
        terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert terms[0]["matchExpressions"] == [
            {"key": label, "operator": "In", "values": ["a", "b"]}
        ]


def test_packed_tasks_want_to_be_near_each_other():
    affinity = pod(made(placement="pack"))["spec"]["affinity"]["podAffinity"]
    (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    selector = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selector == {"jobset.sigs.k8s.io/jobset-name": "mnist"}


def test_a_patch_is_another_manager_so_that_it_comes_last():
    found = made(patch={"nodeSelector": {"disk": "ssd"}})
    managers = [item["manager"] for item in found.trainjob["spec"]["runtimePatches"]]
    assert managers == ["tfadmit.dev/run", "tfadmit.dev/patch"]
    assert pod(found, patch=1)["spec"] == {"nodeSelector": {"disk": "ssd"}}


def test_a_workspace_of_the_runtimes_own_keeps_what_is_each_pods_own_apart():
    on = shipped("tensorflow-distributed")
    container(on)["volumeMounts"].append({"name": "shared", "mountPath": "/workspace"})
    mounts = pod(made(on))["spec"]["containers"][0]["volumeMounts"]
    assert [(item["mountPath"], item.get("subPath")) for item in mounts] == [
        ("/etc/tfadmit/code", None),
        ("/workspace/code", "code"),
        ("/workspace/.tfadmit", ".tfadmit"),
    ]


def test_a_users_value_of_a_variable_of_ours_wins():
    env = [item for item in trainer(made(env=("TFADMIT_JOB=x",)))["env"] if "JOB" in item["name"]]
    assert env == [{"name": "TFADMIT_JOB", "value": "x"}]


def test_a_variable_without_a_value_has_the_callers():
    assert {"name": "HERE", "value": "mine"} in trainer(made(env=("HERE",)))["env"]


def kubernetes(text):
    """What the kubelet makes of a text: `$(NAME)` expands, `$$` is `$`."""
    out, at = [], 0
    while at < len(text):
        if text[at : at + 2] == "$$":
            out.append("$")
            at += 2
        elif text[at : at + 2] == "$(" and ")" in text[at:]:
            out.append("EXPANDED")
            at = text.index(")", at) + 1
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


# Each example plans and judges a whole job; also in CI, where others have ten thousand.
_CALM = settings(max_examples=300)
ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)


@_CALM
@given(words=st.lists(ANY | st.sampled_from(["$(A)", "$$(A)", "$", "y", "~", "1e3"]), max_size=4))
def test_row_4_arguments_arrive_as_they_were_written(words):
    found = made(command=("prog", *words))
    assert [kubernetes(word) for word in trainer(found)["args"]] == ["prog", *words]


@_CALM
@given(words=st.lists(ANY, max_size=3), value=ANY)
def test_row_11_yaml_reads_back_as_the_objects_that_were_meant(words, value):
    found = made(command=("prog", *words), env=(f"A={value}",))
    text = yamlout.dump(found.trainjob)
    (document,) = yamltext.documents(text)
    assert document.content == found.trainjob


@_CALM
@given(
    command=st.lists(ANY, min_size=1).map(tuple),
    env=st.lists(ANY).map(tuple),
    workers=st.none() | st.integers(1, 99).map(str),
    evaluator=st.none() | st.just(True),
    placement=st.sampled_from([None, "spread", "pack"]),
)
def test_row_26_options_survive_the_annotation(**said):
    chosen = Options(**said)
    text = json.dumps(options.to_mapping(chosen))
    assert options.from_mapping(json.loads(text), source="x") == chosen


class Repeated:
    """A cluster with one job of `run` and its ConfigMap."""

    flags = ""

    def __init__(self, found):
        self._found = found

    def get(self, kind, *, namespace, name):
        return self._found.config_map if kind.plural == "configmaps" else self._found.trainjob


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        Code(launcher=b"l", stored=Stored(base="s3://bucket/x", sha256="0" * 64)),
        Code(launcher=b"l"),
    ],
    ids=["in a ConfigMap", "in an object store", "in the image"],
)
def test_row_26_a_job_is_repeated_with_its_code_wherever_that_is(code):
    chosen = Options(command=COMMAND, name="mnist", data=("train=s3://bucket/train",))
    planned = plan.make(wish.read(chosen, environ={}), shipped("tensorflow-distributed"))
    found = objects.submission(planned, code, name="mnist", namespace="team", said=chosen)
    again, its_code = repeated(found)
    assert again == dataclasses.replace(chosen, name=None)
    assert its_code == code


def repeated(found):
    cluster: Any = Repeated(found)
    return repeat.said(cluster, namespace="team", name="mnist")


def test_row_26_a_job_whose_code_is_gone_says_what_helps():
    gone = objects.Submission(trainjob=made().trainjob, config_map={})
    with pytest.raises(fault.ClientError, match="submit your own folder with --code DIR"):
        repeated(gone)


def test_row_26_a_job_of_somebody_elses_is_not_guessed_at():
    found = made()
    del found.trainjob["metadata"]["annotations"]["tfadmit.dev/options"]
    with pytest.raises(fault.ClientError, match="kubectl -n team get trainjob mnist -o yaml"):
        repeated(found)


def test_flags_come_before_a_file():
    below = options.from_mapping({"workers": 2, "env": {"A": 1}, "pack": True}, source="x")
    over = Options(workers="3")
    merged = options.merged(over=over, under=below)
    assert (merged.workers, merged.env, merged.placement) == ("3", ("A=1",), "pack")


def test_a_file_has_the_same_names_as_the_flags():
    fields = {field.name for field in dataclasses.fields(Options)}
    assert {name.replace("-", "_") for name in options.NAMES} == fields


def test_the_same_code_has_the_same_name_and_another_launcher_another():
    assert CODE.name == Code(launcher=b"launcher", archive=b"archive").name
    assert CODE.name != Code(launcher=b"newer", archive=b"archive").name
    assert CODE.name != Code(launcher=b"launcher", archive=b"other").name


def test_what_show_and_the_sdk_read_is_on_the_job():
    found = made().trainjob
    notes = found["metadata"]["annotations"]
    assert json.loads(notes["tfadmit.dev/command"]) == ["python", "train.py"]
    assert json.loads(notes["tfadmit.dev/source"]) == {"commit": "c", "dirty": True}
    assert len(notes["tfadmit.dev/code"]) == 64
    assert found["spec"]["runtimeRef"]["name"] == "tensorflow-distributed"
