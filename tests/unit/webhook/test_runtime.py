"""Runtimes: the label reaches the pods, and those that cannot work are refused."""

import copy

import pytest

import admission
import builders
from builders import LABEL, make_runtime, make_trainer_job
from tfadmit_webhook import policy
from tfadmit_webhook.decision import Reason
from tfadmit_webhook.settings import Settings

MUTATE, VALIDATE = "/mutate/runtimes", "/validate/runtimes"


def pod_labels(runtime, index=0):
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][index]
    return (job["template"]["spec"]["template"].get("metadata") or {}).get("labels")


def judge(runtime, **request):
    return admission.decide(VALIDATE, runtime, **request)


# --- the label ----------------------------------------------------------------------------------


def test_the_label_reaches_the_jobset_and_the_pods_of_the_trainer_step():
    runtime = admission.admit(make_runtime(), path=MUTATE)
    assert pod_labels(runtime) == {"trainer.kubeflow.org/framework": "tensorflow"}
    assert runtime["spec"]["template"]["metadata"]["labels"] == LABEL


@pytest.mark.parametrize("name", ["chief", "master", "worker", "ps", "evaluator"])
def test_the_label_reaches_the_pods_of_a_job_with_the_name_of_a_role(name):
    job = make_trainer_job(name, step=None)
    assert pod_labels(admission.admit(make_runtime(job), path=MUTATE)) == LABEL


def test_the_label_reaches_the_pods_of_a_job_with_a_role_label():
    job = make_trainer_job("params", step=None, labels={"tfadmit.dev/role": "ps"})
    runtime = admission.admit(make_runtime(job), path=MUTATE)
    assert pod_labels(runtime) == LABEL | {"tfadmit.dev/role": "ps"}


@pytest.mark.parametrize(
    "job",
    [
        make_trainer_job("dataset-initializer", step="dataset-initializer"),
        make_trainer_job("tensorboard", step=None),
        make_trainer_job(annotations={"tfadmit.dev/inject": "false"}),
    ],
    ids=["initializer", "helper", "opted out"],
)
def test_jobs_that_are_no_tasks_are_not_labelled(job):
    assert not pod_labels(admission.admit(make_runtime(job), path=MUTATE))


def test_another_frameworks_label_is_kept():
    job = make_trainer_job(labels={"trainer.kubeflow.org/framework": "torch"})
    runtime = admission.admit(make_runtime(job), path=MUTATE)
    assert pod_labels(runtime) == {"trainer.kubeflow.org/framework": "torch"}


@pytest.mark.parametrize("labels", [{}, {"trainer.kubeflow.org/framework": "torch"}])
@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
def test_a_runtime_of_another_framework_is_never_touched(labels, path):
    runtime = make_runtime(labels=labels, network={"enableDNSHostnames": False})
    decision = admission.decide(path, runtime)
    assert (decision.allowed, decision.reason, decision.patch) == (True, Reason.NOT_OURS, ())


def test_labelling_twice_changes_nothing_more():
    once = admission.admit(make_runtime(), path=MUTATE)
    assert admission.decide(MUTATE, once).reason is Reason.COMPLETE


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"template": None},
        {"template": {"spec": None}},
        {"template": {"spec": {"replicatedJobs": None}}},
        {"template": {"spec": {"replicatedJobs": [None, {"name": "node", "template": None}]}}},
        {
            "template": {
                "metadata": None,
                "spec": {"replicatedJobs": [{"template": {"spec": None}}]},
            }
        },
    ],
)
def test_nulls_anywhere_in_a_runtime_are_absent_values(spec):
    runtime = make_runtime() | {"spec": spec}
    assert admission.decide(MUTATE, runtime).allowed
    assert admission.decide(VALIDATE, runtime).reason is Reason.POLICY_VIOLATED


# --- the rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "what"),
    [
        ({}, "is not stated"),
        ({"publishNotReadyAddresses": False}, "is false"),
        ({"publishNotReadyAddresses": None}, "is not stated"),
        ({"publishNotReadyAddresses": "true"}, "is true"),
    ],
)
def test_a_runtime_that_hides_unready_pods_is_refused(network, what):
    decision = judge(make_runtime(network=network))
    assert decision.reason is Reason.POLICY_VIOLATED
    assert decision.message == (
        "TFA001 spec.template.spec.network.publishNotReadyAddresses "
        f"{what}: TensorFlow tasks connect to each other before any pod is ready, and only with "
        "true do pods that are not ready have DNS names; fix: `publishNotReadyAddresses: true`"
    )
    assert dict(decision.audit) == {"violations": "TFA001"}


def test_a_null_network_is_a_missing_one():
    runtime = make_runtime()
    runtime["spec"]["template"]["spec"]["network"] = None
    assert "TFA001" in judge(runtime).message


def test_all_violations_are_reported_at_once_in_the_order_of_their_paths():
    decision = judge(make_runtime(network={"enableDNSHostnames": False}))
    assert [line.split()[:2] for line in decision.message.splitlines()] == [
        ["TFA002", "spec.template.spec.network.enableDNSHostnames"],
        ["TFA001", "spec.template.spec.network.publishNotReadyAddresses"],
    ]


def test_a_runtime_that_conforms_is_accepted():
    assert judge(make_runtime()).reason is Reason.CONFORMS


@pytest.mark.parametrize(
    ("level", "allowed", "warnings"), [("deny", False, 0), ("warn", True, 1), ("off", True, 0)]
)
def test_the_level_of_a_rule_is_a_matter_of_settings(level, allowed, warnings):
    given = admission.context(settings=Settings(policies={"TFA001": level}))
    decision = admission.decide(VALIDATE, make_runtime(network={}), given=given)
    assert decision.allowed is allowed
    assert len(decision.warnings) == warnings


def test_every_rule_has_its_own_file_identifier_and_name():
    ids = [rule.id for rule in policy.rules()]
    assert ids[:2] == ["TFA001", "TFA002"]
    assert len(set(ids)) == len(ids) == len({rule.name for rule in policy.rules()})


# --- updates ------------------------------------------------------------------------------------

BAD = make_runtime(network={})


def changed(runtime, *, path, value):
    copied = copy.deepcopy(runtime)
    target = copied
    for step in path[:-1]:
        target = target.setdefault(step, {})
    target[path[-1]] = value
    return copied


@pytest.mark.parametrize(
    "update",
    [
        changed(BAD, path=["metadata", "finalizers"], value=["trainer.kubeflow.org/in-use"]),
        changed(BAD, path=["metadata", "annotations"], value={"team": "a"}),
        changed(BAD, path=["status"], value={"used": True}),
        admission.admit(BAD, path=MUTATE),
    ],
    ids=["finalizer", "annotation", "status", "our own labels"],
)
def test_an_update_that_changes_nothing_judged_passes_in_violation(update):
    decision = judge(update, operation="UPDATE", old=BAD)
    assert (decision.allowed, decision.reason) == (True, Reason.SPEC_UNCHANGED)


def test_an_update_of_the_spec_is_judged():
    update = changed(BAD, path=["spec", "mlPolicy", "numNodes"], value=2)
    assert not judge(update, operation="UPDATE", old=BAD).allowed


def test_a_runtime_that_becomes_one_of_tensorflow_is_judged():
    old = changed(BAD, path=["metadata", "labels"], value={})
    assert not judge(BAD, operation="UPDATE", old=old).allowed


def test_a_runtime_that_stops_being_one_of_tensorflow_passes():
    update = changed(BAD, path=["metadata", "labels"], value={})
    decision = judge(update, operation="UPDATE", old=BAD)
    assert (decision.allowed, decision.reason) == (True, Reason.NOT_OURS)


def test_labels_left_in_pod_templates_are_warned_of():
    old = admission.admit(make_runtime(), path=MUTATE)
    update = changed(old, path=["metadata", "labels"], value={})
    decision = admission.decide(MUTATE, update, operation="UPDATE", old=old)
    assert decision.allowed
    assert [warning.partition(":")[0] for warning in decision.warnings] == [
        "the pod template of 'node' still has the label trainer.kubeflow.org/framework"
    ]


@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
def test_a_runtime_that_is_being_deleted_passes_untouched(path):
    leaving = make_runtime(network={}, deletionTimestamp="2026-01-01T00:00:00Z")
    decision = admission.decide(path, leaving, operation="UPDATE", old=builders.make_runtime())
    assert (decision.allowed, decision.reason) == (True, Reason.BEING_DELETED)


@pytest.mark.parametrize("path", [MUTATE, VALIDATE])
def test_the_deletion_of_a_runtime_passes(path):
    decision = admission.decide(path, None, operation="DELETE", old=BAD)
    assert (decision.allowed, decision.reason) == (True, Reason.OTHER_OPERATION)
