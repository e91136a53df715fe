"""Exemptions: which objects a rule leaves alone, and where that stays visible."""

import pytest

import admission
from builders import LABEL, make_runtime, make_trainjob
from tfadmit_webhook.decision import Reason
from tfadmit_webhook.settings import Exemption, Settings

VALIDATE = "/validate/runtimes"


def runtime(kind="TrainingRuntime", name="legacy-a", namespace="team-a"):
    """A runtime that breaks TFA001 only."""
    content = make_runtime(network={})
    content["kind"] = kind
    content["metadata"] |= {"name": name, "labels": dict(LABEL)}
    if namespace:
        content["metadata"]["namespace"] = namespace
    return content


def judge(content, *exemptions, **policies):
    settings = Settings(exemptions=exemptions, policies=policies)
    return admission.decide(VALIDATE, content, given=admission.context(settings=settings))


def exemption(rule="TFA001", name="legacy-*", **fields):
    return Exemption(rule=rule, name=name, reason="moves in May", **fields)


@pytest.mark.parametrize("level", ["deny", "warn"])
def test_an_exempted_violation_is_told_to_the_audit_log_only(level):
    decision = judge(runtime(), exemption(), TFA001=level)
    assert (decision.allowed, decision.reason) == (True, Reason.CONFORMS)
    assert decision.warnings == ()
    assert dict(decision.audit) == {"exempted": "TFA001"}


def test_all_other_rules_still_judge():
    content = runtime()
    content["spec"]["template"]["spec"]["network"] = {"enableDNSHostnames": False}
    decision = judge(content, exemption())
    assert not decision.allowed
    assert [line.split()[0] for line in decision.message.splitlines()] == ["TFA002"]
    assert dict(decision.audit) == {"violations": "TFA002", "exempted": "TFA001"}


def test_a_rule_that_is_off_is_not_named():
    assert judge(runtime(), exemption(), TFA001="off").audit == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "legacy-a"},
        {"name": "*"},
        {"kind": "TrainingRuntime"},
        {"namespace": "team-a"},
        {"namespace": "team-*", "kind": "TrainingRuntime"},
    ],
)
def test_an_exemption_matches_by_all_that_it_states(fields):
    assert judge(runtime(), exemption(**fields)).allowed


@pytest.mark.parametrize(
    "fields",
    [
        {"rule": "TFA002"},
        {"name": "legacy"},
        {"name": "LEGACY-*"},
        {"kind": "ClusterTrainingRuntime"},
        {"namespace": "team-b"},
        {"namespace": "team"},
    ],
)
def test_an_exemption_that_states_something_else_matches_nothing(fields):
    assert not judge(runtime(), exemption(**fields)).allowed


def test_an_exemption_with_a_namespace_means_no_object_of_the_cluster():
    content = runtime("ClusterTrainingRuntime", namespace=None)
    assert not judge(content, exemption(namespace="*")).allowed
    assert judge(content, exemption()).allowed


def test_a_trainjob_is_exempted_by_its_own_name_and_the_namespace_of_the_request():
    content = make_trainjob()
    content["metadata"]["name"] = "legacy-job"
    content["metadata"].pop("namespace", None)
    content["spec"]["trainer"] = {"numNodes": 0}
    labelled = make_runtime(name=content["spec"]["runtimeRef"]["name"])
    for namespace, exempted in (("team-a", True), ("team-b", False)):
        settings = Settings(exemptions=(exemption("TFA016", namespace="team-a"),))
        decision = admission.decide(
            "/validate/trainjobs",
            content,
            given=admission.context(labelled, settings=settings),
            namespace=namespace,
        )
        assert (decision.warnings == ()) is exempted
        assert dict(decision.audit) == {"exempted" if exempted else "violations": "TFA016"}


def test_the_label_that_trainers_own_webhook_obeys_exempts_nothing():
    content = runtime()
    content["metadata"]["labels"] |= {"trainer.kubeflow.org/webhook-validation": "disabled"}
    assert dict(judge(content).audit) == {"violations": "TFA001"}
