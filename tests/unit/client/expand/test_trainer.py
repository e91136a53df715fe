"""TrainJob and runtime in, JobSet out; the expectations are Trainer's rules, written out."""

import pytest

from builders import make_container, make_runtime, make_trainer_job
from tfadmit_client.expand import trainer


def make_trainjob(*, name="mnist", trainer=None, **spec):
    content = {"runtimeRef": {"name": "tensorflow-distributed"}, **spec}
    if trainer is not None:
        content["trainer"] = trainer
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "team"},
        "spec": content,
    }


def expand(trainjob, runtime=None):
    return trainer.jobset(trainjob, runtime or make_runtime(), namespace="team")


def jobs(expansion):
    return {job["name"]: job for job in expansion.jobset["spec"]["replicatedJobs"]}


def counts(expansion):
    return {
        name: (job["template"]["spec"]["parallelism"], job["template"]["spec"]["completions"])
        for name, job in jobs(expansion).items()
    }


def container(expansion, job="node", index=0):
    return jobs(expansion)[job]["template"]["spec"]["template"]["spec"]["containers"][index]


def with_container(**fields):
    job = make_trainer_job()
    job["template"]["spec"]["template"]["spec"]["containers"] = [make_container(**fields)]
    return make_runtime(job)


# --- how many pods ------------------------------------------------------------------------------


def test_num_nodes_becomes_parallelism_and_completions_of_the_node_job():
    assert counts(expand(make_trainjob(trainer={"numNodes": 5}))) == {"node": (5, 5)}


def test_the_runtime_s_num_nodes_holds_when_the_trainjob_states_none():
    runtime = make_runtime()
    runtime["spec"]["mlPolicy"]["numNodes"] = 4
    assert counts(expand(make_trainjob(), runtime)) == {"node": (4, 4)}


def test_the_policy_s_number_goes_to_every_trainer_step_the_trainjob_s_only_to_the_first():
    runtime = make_runtime(make_trainer_job("node"), make_trainer_job("ps"))
    runtime["spec"]["mlPolicy"]["numNodes"] = 4
    expansion = expand(make_trainjob(trainer={"numNodes": 7}), runtime)
    assert counts(expansion) == {"node": (7, 7), "ps": (4, 4)}


def test_jobs_of_no_step_keep_the_parallelism_of_their_template():
    ps = make_trainer_job("ps", step=None)
    ps["template"]["spec"] |= {"parallelism": 3, "completions": 9}
    chief = make_trainer_job("chief", step=None)
    expansion = expand(make_trainjob(), make_runtime(chief, ps, make_trainer_job()))
    assert counts(expansion) == {"chief": (1, 1), "ps": (3, 3), "node": (1, 1)}


def test_without_a_policy_the_template_counts_and_num_nodes_still_wins():
    job = make_trainer_job()
    job["template"]["spec"]["parallelism"] = 2
    runtime = make_runtime(job)
    del runtime["spec"]["mlPolicy"]
    assert counts(expand(make_trainjob(), runtime)) == {"node": (2, 2)}
    assert counts(expand(make_trainjob(trainer={"numNodes": 3}), runtime)) == {"node": (3, 3)}


def test_zero_nodes_in_a_policy_means_one_in_a_trainjob_none():
    runtime = make_runtime()
    runtime["spec"]["mlPolicy"]["numNodes"] = 0
    assert counts(expand(make_trainjob(), runtime)) == {"node": (1, 1)}
    assert counts(expand(make_trainjob(trainer={"numNodes": 0}), runtime)) == {"node": (0, 0)}


def test_replicas_are_forced_to_one_for_trainer_steps_and_for_no_other():
    node, ps = make_trainer_job(), make_trainer_job("ps", step=None)
    node["replicas"] = ps["replicas"] = 4
    found = jobs(expand(make_trainjob(), make_runtime(node, ps)))
    assert (found["node"]["replicas"], found["ps"]["replicas"]) == (1, 4)


# --- what the container runs --------------------------------------------------------------------


def test_image_command_and_args_replace_those_of_container_node():
    runtime = with_container(command=["old"], args=["--old"])
    stated = {"image": "mine:1", "command": ["python"], "args": ["-c", "pass"]}
    found = container(expand(make_trainjob(trainer=stated), runtime))
    assert found == {"name": "node", **stated}


def test_an_empty_command_replaces_nothing():
    runtime = with_container(command=["old"])
    found = container(expand(make_trainjob(trainer={"command": []}), runtime))
    assert found["command"] == ["old"]


def test_the_trainjob_s_variables_replace_in_place_or_come_last():
    runtime = with_container(
        env=[
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "C", "value": "3"},
        ]
    )
    env = [{"name": "D", "value": "4"}, {"name": "B", "value": "2"}]
    assert container(expand(make_trainjob(trainer={"env": env}), runtime))["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "2"},
        {"name": "C", "value": "3"},
        {"name": "D", "value": "4"},
    ]


def test_resources_per_node_are_merged_by_name():
    runtime = with_container(
        resources={"limits": {"cpu": "4", "nvidia.com/gpu": "8"}, "requests": {"cpu": "4"}}
    )
    stated = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}}}
    assert container(expand(make_trainjob(trainer=stated), runtime))["resources"] == {
        "limits": {"cpu": "4", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "4"},
    }


def test_without_a_policy_trainer_ignores_the_resources():
    runtime = with_container()
    del runtime["spec"]["mlPolicy"]
    stated = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}}}
    assert "resources" not in container(expand(make_trainjob(trainer=stated), runtime))


def test_only_container_node_of_trainer_steps_is_changed():
    node, ps = make_trainer_job(), make_trainer_job("ps", step=None)
    pod = node["template"]["spec"]["template"]["spec"]
    pod["containers"] = [make_container("sidecar"), make_container()]
    runtime = make_runtime(node, ps)
    found = expand(make_trainjob(trainer={"image": "mine:1"}), runtime)
    images = [container(found, index=0), container(found, index=1), container(found, "ps")]
    assert [item["image"] for item in images] == ["python:3.13-slim", "mine:1", "python:3.13-slim"]


def test_initializers_get_their_address_variables_and_secret():
    job = make_trainer_job("dataset-initializer", step="dataset-initializer")
    pod = job["template"]["spec"]["template"]["spec"]
    pod["containers"] = [make_container("dataset-initializer")]
    stated = {
        "storageUri": "s3://bucket/data",
        "env": [{"name": "X", "value": "1"}],
        "secretRef": {"name": "keys"},
    }
    trainjob = make_trainjob(initializer={"dataset": stated})
    found = container(expand(trainjob, make_runtime(job, make_trainer_job())), job["name"])
    assert found["env"] == [
        {"name": "STORAGE_URI", "value": "s3://bucket/data"},
        {"name": "X", "value": "1"},
    ]
    assert found["envFrom"] == [{"secretRef": {"name": "keys"}}]


# --- metadata -----------------------------------------------------------------------------------


def test_the_jobset_belongs_to_the_trainjob_and_has_the_template_s_labels():
    runtime = make_runtime()
    runtime["spec"]["template"]["metadata"] = {"labels": {"queue": "a"}}
    trainjob = make_trainjob(suspend=True)
    trainjob["metadata"]["labels"] = {"not": "copied"}
    trainjob["metadata"]["uid"] = "uid-of-the-trainjob"
    content = expand(trainjob, runtime).jobset
    assert content["metadata"]["labels"] == {"queue": "a"}
    assert content["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "name": "mnist",
            "uid": "uid-of-the-trainjob",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert content["spec"]["suspend"] is True


@pytest.mark.parametrize(
    ("policy", "place", "mark"),
    [
        ("coscheduling", "labels", {"scheduling.x-k8s.io/pod-group": "mnist"}),
        ("volcano", "annotations", {"scheduling.k8s.io/group-name": "mnist"}),
    ],
)
def test_gang_scheduling_marks_every_pod(policy, place, mark):
    runtime = make_runtime(make_trainer_job("ps", step=None), make_trainer_job())
    runtime["spec"]["podGroupPolicy"] = {policy: {}}
    for job in jobs(expand(make_trainjob(), runtime)).values():
        assert job["template"]["spec"]["template"]["metadata"][place] == mark


def test_uids_are_the_same_each_time_and_differ_by_name():
    one, again = expand(make_trainjob()), expand(make_trainjob())
    other = expand(make_trainjob(name="other"))
    assert one.jobset == again.jobset
    assert one.jobset["metadata"]["uid"] != other.jobset["metadata"]["uid"]


def test_the_runtime_and_the_trainjob_stay_as_they_were():
    runtime, trainjob = (
        with_container(env=[{"name": "A", "value": "1"}]),
        make_trainjob(trainer={"env": [{"name": "A", "value": "2"}], "numNodes": 2}),
    )
    before = repr((runtime, trainjob))
    expand(trainjob, runtime)
    assert repr((runtime, trainjob)) == before


# --- what is said -------------------------------------------------------------------------------


def test_another_framework_s_policy_is_mentioned():
    runtime = make_runtime()
    runtime["spec"]["mlPolicy"]["torch"] = {"numProcPerNode": "auto"}
    (remark,) = expand(make_trainjob(), runtime).remarks
    assert remark.text.startswith("the runtime has mlPolicy.torch: ")


def test_fields_of_older_trainers_are_mentioned():
    (remark,) = expand(make_trainjob(podTemplateOverrides=[])).remarks
    assert remark.text.startswith("spec.podTemplateOverrides is not applied: Trainer 2.3")


@pytest.mark.parametrize(
    "spec",
    [{}, {"template": None}, {"template": {"spec": {"replicatedJobs": [None, {"name": "x"}]}}}],
)
def test_a_runtime_with_holes_breaks_nothing(spec):
    runtime = {"metadata": {"name": "x"}, "spec": spec}
    assert expand(make_trainjob(trainer={"numNodes": 2}), runtime).jobset["kind"] == "JobSet"
