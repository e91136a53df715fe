"""TrainJobs: judged with their runtime, and let through whenever that is not known."""

import copy

import pytest

import admission
from builders import make_container, make_runtime, make_trainer_job, make_trainjob
from tfadmit_webhook import facts, trainjob
from tfadmit_webhook.decision import Reason
from tfadmit_webhook.settings import Settings

PATH = "/validate/trainjobs"
# JobSet counts "-node-0-<last>-abcde"
FITS = "x" * (63 - len("-node-0-0-abcde"))
KERAS = "nvcr.io/nvidia/tensorflow:25.02-tf2-py3"


class Reader(facts.StaticReader):
    """Counts the look-ups of runtimes; fails with an error when it has one."""

    def __init__(self, *runtimes, error=""):
        super().__init__(runtimes=runtimes)
        self.error, self.asked = error, []

    def runtime(self, *, kind, namespace, name, timeout):
        self.asked.append((kind, namespace, name, timeout))
        if self.error:
            raise facts.LookupFailedError(self.error)
        return super().runtime(kind=kind, namespace=namespace, name=name, timeout=timeout)


def judge(content, *runtimes, error="", settings=None, **request):
    reader = Reader(*(runtimes or (make_runtime(),)), error=error)
    given = admission.context(reader=reader, settings=settings)
    decision = admission.decide(PATH, content, given=given, **request)
    return decision, reader.asked


def role(name, **spec):
    job = make_trainer_job(name, step=None)
    job["template"]["spec"] |= spec
    return job


def warnings(content, *runtimes, rule):
    decision, _ = judge(content, *runtimes)
    assert decision.allowed
    return [text for text in decision.warnings if text.startswith(rule)]


# --- which are judged, and by what they are looked up ---------------------------------------------


def test_a_trainjob_that_is_right_passes_in_silence():
    decision, asked = judge(make_trainjob(numNodes=2))
    assert (decision.allowed, decision.reason, decision.warnings) == (True, Reason.CONFORMS, ())
    assert asked == [("ClusterTrainingRuntime", "", "tensorflow-distributed", 5.0)]


def test_a_namespaced_runtime_is_looked_up_in_the_trainjobs_namespace():
    runtime = {**make_runtime(namespace="team"), "kind": "TrainingRuntime"}
    decision, asked = judge(make_trainjob(kind="TrainingRuntime", numNodes=0), runtime)
    assert asked == [("TrainingRuntime", "team", "tensorflow-distributed", 5.0)]
    assert [text.split()[0] for text in decision.warnings] == ["TFA016"]


@pytest.mark.parametrize(
    "reference",
    [
        {"name": "x", "kind": "ClusterTrainingRuntime", "apiGroup": "example.com"},
        {"name": "x", "kind": "MyRuntime"},
        {"kind": "ClusterTrainingRuntime"},
        None,
    ],
)
def test_what_refers_to_no_runtime_of_trainer_is_not_ours(reference):
    content = make_trainjob()
    content["spec"]["runtimeRef"] = reference
    decision, asked = judge(content)
    assert (decision.allowed, decision.reason, asked) == (True, Reason.NOT_OURS, [])


@pytest.mark.parametrize("labels", [{}, {"trainer.kubeflow.org/framework": "torch"}])
def test_a_trainjob_on_another_frameworks_runtime_is_not_judged(labels):
    decision, _ = judge(make_trainjob(name="x" * 63, numNodes=0), make_runtime(labels=labels))
    assert (decision.allowed, decision.reason, decision.warnings) == (True, Reason.NOT_OURS, ())


def test_a_failed_lookup_lets_it_pass_and_says_what_was_not_checked():
    error = "asked for ClusterTrainingRuntime x: the API server answered 500, boom; try again"
    decision, _ = judge(make_trainjob(name="x" * 63), error=error)
    assert (decision.allowed, decision.reason) == (True, Reason.UNJUDGED)
    assert decision.warnings == [f"tfadmit did not check this TrainJob: {error}"]


def test_only_a_changed_spec_is_judged_and_suspend_is_no_change():
    content, other = make_trainjob(name="x" * 63), make_trainjob(name="x" * 63)
    other["spec"]["suspend"] = True
    other["metadata"]["finalizers"] = ["example.com/x"]
    decision, asked = judge(content, operation="UPDATE", old=other)
    assert (decision.allowed, decision.reason, asked) == (True, Reason.SPEC_UNCHANGED, [])
    changed = make_trainjob(name="x" * 63, numNodes=2)
    assert not judge(changed, operation="UPDATE", old=content)[0].allowed


def test_a_deletion_passes():
    content = make_trainjob(name="x" * 63)
    content["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    decision, _ = judge(content, operation="UPDATE", old=make_trainjob())
    assert (decision.allowed, decision.reason) == (True, Reason.BEING_DELETED)


@pytest.mark.parametrize("request_", [{"subResource": "status"}, {"operation": "DELETE"}])
def test_status_and_other_operations_pass(request_):
    decision, _ = judge(make_trainjob(name="x" * 63), **request_)
    assert (decision.allowed, decision.reason) == (True, Reason.OTHER_OPERATION)


@pytest.mark.parametrize("spec", [None, {}, {"runtimeRef": []}, {"trainer": 3}, "text"])
def test_fields_of_other_types_are_no_fault(spec):
    content = make_trainjob()
    content["spec"] = spec
    assert judge(content)[0].allowed
    if isinstance(spec, dict):
        content["spec"] = {**spec, "runtimeRef": {"name": "tensorflow-distributed"}}
        assert judge(content)[0].allowed


# --- TFA014: names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "runtime", "room"),
    [
        (make_trainjob(name=FITS + "x"), make_runtime(), 48),
        # the index of the last node gets longer
        (make_trainjob(name=FITS, numNodes=11), make_runtime(), 47),
        (make_trainjob(name=FITS, numNodes=101), make_runtime(), 46),
        # the longest names of all jobs count, helpers too: JobSet checks them all
        (make_trainjob(name=FITS), make_runtime(make_trainer_job(), role("tensorboard")), 41),
        (
            make_trainjob(name=FITS),
            make_runtime(make_trainer_job(), {**role("ps"), "replicas": 10001}),
            48 - len("10000") + len("node") - len("ps") + len("0"),
        ),
        # Trainer writes a job's parallelism over its completions
        (
            make_trainjob(name=FITS),
            make_runtime(make_trainer_job(), role("chief", completions=1, parallelism=2000)),
            48 - len("1999") - len("chief") + len("node") + len("0"),
        ),
    ],
)
def test_a_name_without_room_is_refused_with_the_length_that_fits(content, runtime, room):
    decision, _ = judge(content, runtime)
    assert (decision.code, decision.reason) == (403, Reason.POLICY_VIOLATED)
    assert decision.message.startswith("TFA014 metadata.name has ")
    assert decision.message.endswith(f"fix: a name of at most {room} characters")
    content["metadata"]["name"] = "x" * room
    assert judge(content, runtime)[0].allowed


@pytest.mark.parametrize(
    ("content", "runtime"),
    [
        (make_trainjob(name=FITS), make_runtime()),
        (make_trainjob(name=FITS, numNodes=10), make_runtime()),
        # without an index there is only the name of the Job
        (
            make_trainjob(name=FITS),
            make_runtime(make_trainer_job(), role("a-sidecar", completionMode="NonIndexed")),
        ),
    ],
)
def test_a_name_that_just_fits_passes(content, runtime):
    assert judge(content, runtime)[0].allowed


def test_the_nodes_of_the_runtime_count_where_the_trainjob_states_none():
    runtime = make_runtime()
    runtime["spec"]["mlPolicy"] = {"numNodes": 11}
    assert not judge(make_trainjob(name=FITS), runtime)[0].allowed
    assert judge(make_trainjob(name=FITS, numNodes=10), runtime)[0].allowed
    # without a policy it is the template's parallelism
    del runtime["spec"]["mlPolicy"]
    assert judge(make_trainjob(name=FITS), runtime)[0].allowed
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["parallelism"] = 11
    assert not judge(make_trainjob(name=FITS), runtime)[0].allowed


def test_where_no_name_fits_the_runtime_is_to_be_changed():
    decision, _ = judge(make_trainjob(), make_runtime(make_trainer_job("x" * 60)))
    assert decision.message.endswith("fix: shorter names of the replicated jobs in the runtime")


def test_a_generated_name_counts_with_its_end():
    content = make_trainjob()
    content["metadata"] = {"generateName": "x" * 44, "namespace": "team"}
    assert len(trainjob.name(content)) == 49
    assert not judge(content)[0].allowed


def test_the_settings_decide_on_the_level():
    settings = Settings(policies={"TFA014": "warn"})
    decision, _ = judge(make_trainjob(name="x" * 63), settings=settings)
    assert decision.allowed
    assert decision.warnings[0].startswith("TFA014 ")


# --- TFA015: the runtime --------------------------------------------------------------------------


def test_a_missing_runtime_is_warned_of_and_nothing_else():
    content = make_trainjob(runtime="gone", name="x" * 63, numNodes=0)
    decision, _ = judge(content)
    (warning,) = decision.warnings
    assert decision.allowed
    assert "names ClusterTrainingRuntime gone, which does not exist" in warning
    assert warning.endswith("fix: a name that `kubectl get clustertrainingruntime` shows")


def test_a_missing_runtime_of_the_namespace_is_shown_with_it():
    (warning,) = warnings(make_trainjob(kind="TrainingRuntime"), rule="TFA015")
    assert "TrainingRuntime team/tensorflow-distributed" in warning
    assert "`kubectl get trainingruntime -n team`" in warning


def test_a_runtime_that_is_being_deleted_is_warned_of():
    runtime = make_runtime(deletionTimestamp="2026-01-01T00:00:00Z")
    (warning,) = warnings(make_trainjob(), runtime, rule="TFA015")
    assert "is being deleted" in warning


# --- TFA016: the number of nodes ------------------------------------------------------------------

SERVERS = make_runtime(make_trainer_job(), role("ps", parallelism=2))


@pytest.mark.parametrize(
    ("content", "runtime", "words"),
    [
        (make_trainjob(numNodes=0), make_runtime(), "numNodes is 0"),
        (make_trainjob(numNodes=-1), make_runtime(), "numNodes is -1"),
        (make_trainjob(numNodes=1), SERVERS, "parameter servers and no chief"),
        (make_trainjob(), SERVERS, "is 1, and"),
        (make_trainjob(numNodes=2), make_runtime(make_trainer_job("chief")), "is the chief"),
    ],
)
def test_a_number_of_nodes_that_trains_nothing_is_warned_of(content, runtime, words):
    (warning,) = warnings(content, runtime, rule="TFA016")
    assert words in warning


@pytest.mark.parametrize(
    ("content", "runtime"),
    [
        (make_trainjob(numNodes=1), make_runtime()),
        (make_trainjob(numNodes=2), SERVERS),
        (make_trainjob(numNodes=1), make_runtime(make_trainer_job(), role("ps"), role("chief"))),
        (make_trainjob(numNodes=1), make_runtime(make_trainer_job(), role("ps"), role("worker"))),
        (make_trainjob(numNodes=1), make_runtime(make_trainer_job(), role("evaluator"))),
        (make_trainjob(numNodes=1), make_runtime(make_trainer_job("chief"))),
        (make_trainjob(numNodes=0), make_runtime(role("worker"))),
    ],
)
def test_a_number_of_nodes_that_can_be_meant_is_no_finding(content, runtime):
    assert warnings(content, runtime, rule="TFA016") == []


# --- TFA010 and TFA017: what a TrainJob adds to the pods ------------------------------------------


@pytest.mark.parametrize("name", ["TF_CONFIG", "TF_TASK_INDEX"])
def test_what_differs_per_pod_is_warned_of_in_the_trainers_environment(name):
    env = [{"name": "EPOCHS", "value": "3"}, {"name": name, "value": "0"}]
    (warning,) = warnings(make_trainjob(env=env), rule="TFA010")
    assert warning.startswith(f"TFA010 spec.trainer.env[1] sets {name}")


def test_a_reference_can_differ_per_pod():
    env = [{"name": "TF_TASK_INDEX", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
    assert warnings(make_trainjob(env=env), rule="TFA010") == []


def test_the_trainers_image_is_judged_when_there_are_several_workers():
    (warning,) = warnings(make_trainjob(image=KERAS, numNodes=2), rule="TFA017")
    assert warning.startswith(f"TFA017 spec.trainer.image {KERAS} has")
    assert warnings(make_trainjob(image=KERAS, numNodes=1), rule="TFA017") == []
    assert warnings(make_trainjob(image="x", numNodes=2), rule="TFA017") == []
    assert warnings(make_trainjob(numNodes=2), rule="TFA017") == []


# --- patches


def patched(name="node", *, field="runtimePatches", **spec):
    """A TrainJob that changes the pods of a replicated job, as some release of Trainer has it."""
    job = {"name": name, "template": {"spec": {"template": {"spec": spec}}}}
    of_jobs = {"template": {"spec": {"replicatedJobs": [job]}}}
    entry = {
        "runtimePatches": {"manager": "a.dev/b", "trainingRuntimeSpec": of_jobs},
        "podTemplateOverrides": {"targetJobs": [{"name": name}], "spec": spec},
        "podSpecOverrides": {"targetJobs": [{"name": name}], **spec},
    }[field]
    content = make_trainjob()
    content["spec"][field] = [entry]
    return content


INNER = "runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"
PATHS = {
    "runtimePatches": f"{INNER}.template.spec.template.spec",
    "podTemplateOverrides": "podTemplateOverrides[0].spec",
    "podSpecOverrides": "podSpecOverrides[0]",
}


@pytest.mark.parametrize("field", PATHS)
@pytest.mark.parametrize("name", ["TF_CONFIG", "TF_TASK_INDEX"])
def test_what_differs_per_pod_is_warned_of_in_patches(field, name):
    env = [{"name": "A"}, {"name": name, "value": "{}"}]
    content = patched(field=field, containers=[{"name": "node", "env": env}])
    (warning,) = warnings(content, make_runtime(), rule="TFA010")
    assert f" spec.{PATHS[field]}.containers[0].env[1] sets {name}" in warning


def test_a_patch_of_what_is_no_task_is_not_looked_at():
    env = [{"name": "TF_CONFIG", "value": "{}"}]
    helper = role("dataset-initializer")
    content = patched("dataset-initializer", containers=[{"name": "node", "env": env}])
    assert warnings(content, make_runtime(helper, make_trainer_job()), rule="TFA010") == []


def refused(content, *runtimes):
    decision, _ = judge(content, *runtimes)
    return [line for line in decision.message.splitlines() if line.startswith("TFA023")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (patched("worker"), "name is 'worker', which is no job of the runtime"),
        (patched("worker", field="podTemplateOverrides"), "targetJobs[0].name is 'worker'"),
        (patched(initContainers=[{"name": "fetch"}]), "initContainers[0].name is 'fetch'"),
        (
            patched(containers=[{"name": "side"}]),
            "containers[0].name is 'side', and 'node' has node",
        ),
        (
            patched(containers=[{"name": "node", "volumeMounts": [{"name": "data"}]}]),
            "volumeMounts[0].name is 'data', and 'node' has none",
        ),
    ],
)
def test_a_patch_that_names_what_the_runtime_has_not_is_refused(content, words):
    (sentence,) = refused(content, make_runtime())
    assert words in sentence


def test_a_patch_of_what_is_there_passes():
    mounts = [{"name": name} for name in ("in-runtime", "in-patch", "claimed")]
    content = patched(
        containers=[{"name": "node", "volumeMounts": mounts}], volumes=[{"name": "in-patch"}]
    )
    on = make_runtime()
    spec = on["spec"]["template"]["spec"]
    spec["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": "claimed"}}]}]
    pod = spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "in-runtime"}]
    assert refused(content, on) == []


# --- limits


def limited(job_limits, runtime_limits=None, *, policy=True):
    content = make_trainjob(resourcesPerNode={"limits": job_limits})
    job = make_trainer_job()
    container = make_container(resources={"limits": runtime_limits})
    job["template"]["spec"]["template"]["spec"]["containers"] = [container]
    on = make_runtime(job)
    if not policy:
        del on["spec"]["mlPolicy"]
    return warnings(content, on, rule="TFA013")


@pytest.mark.parametrize(
    ("stated", "below"), [({"memory": "1Gi"}, None), ({"memory": "1Gi"}, {"rdma/hca": 1})]
)
def test_limits_that_the_sdk_cannot_read_are_warned_of_in_a_trainjob(stated, below):
    (warning,) = limited(stated, below)
    assert warning.startswith("TFA013 spec.trainer.resourcesPerNode.limits has only memory")


@pytest.mark.parametrize(
    ("stated", "below", "policy"),
    [
        ({"memory": "1Gi", "cpu": 1}, None, True),
        ({"memory": "1Gi"}, {"nvidia.com/gpu": 1}, True),  # they are merged
        ({}, None, True),
        ({"memory": "1Gi"}, None, False),  # Trainer does not apply them
    ],
)
def test_limits_that_the_sdk_can_read_are_no_finding(stated, below, policy):
    assert limited(stated, below, policy=policy) == []


# --- TFA025: the numbers of other roles -----------------------------------------------------------

ROLES = make_runtime(
    role("chief"), make_trainer_job(), role("ps", parallelism=2), role("evaluator")
)
REPLICAS = "tfadmit.dev/replicas"


def patch(text):
    metadata = {"annotations": {REPLICAS: text}}
    return {"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"metadata": metadata}}}


def wishing(*texts, **trainer):
    content = make_trainjob(**trainer)
    content["spec"]["runtimePatches"] = [patch(text) for text in texts]
    return content


def with_template(runtime, text, **spec):
    content = copy.deepcopy(runtime)
    content["spec"]["template"]["metadata"] = {"annotations": {REPLICAS: text}}
    content["spec"] |= spec
    return content


def sizes(content, runtime):
    return {job.name: job.group.size for job in trainjob.jobs(content, runtime)}


@pytest.mark.parametrize(
    ("content", "runtime", "expected"),
    [
        (wishing("ps=4,evaluator=0", numNodes=3), ROLES, {"chief": 1, "node": 3, "ps": 4}),
        (wishing("ps=4", "ps=1"), ROLES, {"chief": 1, "node": 1, "ps": 1, "evaluator": 1}),
        (make_trainjob(), with_template(ROLES, "evaluator=0"), {"chief": 1, "node": 1, "ps": 2}),
        (wishing("chief=0"), with_template(ROLES, "ps=9"), {"node": 1, "ps": 2, "evaluator": 1}),
        (wishing("chief=2"), ROLES, {"chief": 1, "node": 1, "ps": 2, "evaluator": 1}),
    ],
)
def test_rules_see_the_pods_that_come(content, runtime, expected):
    assert sizes(content, runtime) == expected


def test_the_annotations_of_an_older_trainer_count_as_well():
    content = make_trainjob()
    content["spec"]["annotations"] = {REPLICAS: "ps=5"}
    assert sizes(content, ROLES)["ps"] == 5


def test_the_name_is_measured_by_the_jobs_that_are_left():
    name = "x" * (63 - len("-chief-0-0-abcde"))
    decision, _ = judge(wishing("evaluator=0") | {"metadata": {"name": name}}, ROLES)
    assert decision.allowed
    decision, _ = judge(wishing("ps=2") | {"metadata": {"name": name}}, ROLES)
    assert decision.message.startswith("TFA014 ")


def test_a_removed_chief_leaves_the_only_worker_alone():
    (warning,) = warnings(wishing("chief=0", numNodes=1), ROLES, rule="TFA016")
    assert "parameter servers and no chief" in warning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ps=x", "'x' is no number of tasks"),
        ("worker=4", "the role worker has 2 tasks by numNodes, not 4"),
        ("boss=1", "there is no role 'boss'"),
    ],
)
def test_numbers_that_no_jobset_could_be_given_are_refused(text, words):
    decision, _ = judge(wishing("ps=1", text, numNodes=2), ROLES)
    where = f"spec.runtimePatches[1].trainingRuntimeSpec.template.metadata.annotations[{REPLICAS}]"
    assert decision.message.startswith(f"TFA025 {where} is {text!r}: ")
    assert words in decision.message


def test_a_runtimes_own_numbers_are_refused_at_its_name():
    decision, _ = judge(make_trainjob(), with_template(ROLES, "boss=1"))
    start = f"TFA025 spec.runtimeRef names a runtime whose annotation {REPLICAS} is 'boss=1': "
    assert decision.message.startswith(start)


@pytest.mark.parametrize("gang", ["coscheduling", "volcano"])
def test_a_gang_has_the_numbers_of_its_runtime(gang):
    runtime = {**ROLES, "spec": {**ROLES["spec"], "podGroupPolicy": {gang: {}}}}
    decision, _ = judge(wishing("ps=4"), runtime)
    assert "makes 7 pods, but Trainer makes a PodGroup of 5" in decision.message
    assert judge(wishing("ps=2"), runtime)[0].allowed
    assert judge(wishing("ps=3,evaluator=0"), runtime)[0].allowed


def test_an_annotation_of_the_trainjob_itself_is_warned_of():
    content = make_trainjob()
    content["metadata"]["annotations"] = {REPLICAS: "ps=4"}
    (warning,) = warnings(content, ROLES, rule="TFA025")
    assert "has no effect: Trainer copies no annotation of a TrainJob" in warning
    assert "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations" in warning


def queued(content, **labels):
    content = copy.deepcopy(content)
    content["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team", **labels}
    return content


def test_a_queued_trainjob_has_the_numbers_that_kueue_counts():
    decision, _ = judge(queued(wishing("ps=4")), ROLES)
    assert "Kueue admits a TrainJob by the numbers of its runtime" in decision.message
    assert "state the numbers as `parallelism`" in decision.message
    # not even others of the same sum: Kueue counts job by job
    assert not judge(queued(wishing("ps=3,evaluator=0")), ROLES)[0].allowed
    assert judge(queued(wishing("ps=2")), ROLES)[0].allowed


def test_a_queue_that_comes_later_is_judged_and_other_labels_are_not():
    old = wishing("ps=4")
    decision, _ = judge(queued(old), ROLES, operation="UPDATE", old=old)
    assert not decision.allowed
    decision, _ = judge(queued(old, team="a"), ROLES, operation="UPDATE", old=queued(old))
    assert decision.reason is Reason.SPEC_UNCHANGED
