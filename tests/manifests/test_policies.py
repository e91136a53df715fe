"""The optional policy of deploy/policies: it looks at what the webhook is asked about."""

from __future__ import annotations

import pytest

from manifests import shipped

NAME = "injected-pods.tfadmit.dev"


@pytest.fixture(scope="module")
def policies():
    rendering = shipped.kustomize(shipped.DEPLOY / "policies")
    assert (rendering.returncode, rendering.stderr) == (0, "")
    return shipped.parse(rendering.stdout)


def test_the_folder_holds_one_policy_and_what_puts_it_in_force(policies):
    assert sorted(item["kind"] for item in policies) == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]
    assert {item["metadata"]["name"] for item in policies} == {NAME}
    assert {item["apiVersion"] for item in policies} == {"admissionregistration.k8s.io/v1"}
    binding = shipped.one(policies, "ValidatingAdmissionPolicyBinding")
    assert binding["spec"] == {"policyName": NAME, "validationActions": ["Deny"]}


def test_the_base_stays_without_it(base):
    assert not any(item["kind"].startswith("ValidatingAdmissionPolicy") for item in base)


def test_it_matches_the_pods_that_the_webhook_matches(policies, base):
    configuration = shipped.one(base, "MutatingWebhookConfiguration")
    (hook,) = (item for item in configuration["webhooks"] if item["name"] == "pods.tfadmit.dev")
    spec = shipped.one(policies, "ValidatingAdmissionPolicy")["spec"]
    assert spec["matchConstraints"] == {
        "matchPolicy": "Equivalent",
        "resourceRules": hook["rules"],
        "objectSelector": hook["objectSelector"],
        "namespaceSelector": hook["namespaceSelector"],
    }
    assert spec["failurePolicy"] == "Fail"


def test_it_asks_for_the_task_index_and_says_what_to_do(policies):
    spec = shipped.one(policies, "ValidatingAdmissionPolicy")["spec"]
    (validation,) = spec["validations"]
    assert "e.name == 'TF_TASK_INDEX'" in validation["expression"]
    assert validation["reason"] == "Forbidden"
    message = validation["messageExpression"]
    assert "kubectl get mutatingwebhookconfiguration tfadmit" in message
    assert 'tfadmit.dev/inject: "false"' in message
    conditions = {item["name"]: item["expression"] for item in spec["matchConditions"]}
    assert list(conditions) == ["not-opted-out", "not-a-mirror-pod"]
    assert "tfadmit.dev/inject" in conditions["not-opted-out"]
    assert "kubernetes.io/config.mirror" in conditions["not-a-mirror-pod"]
