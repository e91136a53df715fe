"""The webhook configurations: what the API server sends where, and what without an answer."""

from __future__ import annotations

import pytest

from manifests import shipped

RUNTIMES = {
    "apiGroups": ["trainer.kubeflow.org"],
    "apiVersions": ["v1alpha1"],
    "resources": ["clustertrainingruntimes", "trainingruntimes"],
    "operations": ["CREATE", "UPDATE"],
    "scope": "*",
}
TRAINJOBS = {
    "apiGroups": ["trainer.kubeflow.org"],
    "apiVersions": ["v1alpha1"],
    "resources": ["trainjobs"],
    "operations": ["CREATE", "UPDATE"],
    "scope": "Namespaced",
}
JOBSETS = {
    "apiGroups": ["jobset.x-k8s.io"],
    "apiVersions": ["v1alpha2"],
    "resources": ["jobsets"],
    "operations": ["CREATE", "UPDATE"],
    "scope": "Namespaced",
}
PODS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
    "scope": "Namespaced",
}
HOOKS = [
    ("MutatingWebhookConfiguration", "pods.tfadmit.dev", "/mutate/pods", PODS),
    ("MutatingWebhookConfiguration", "jobsets.tfadmit.dev", "/mutate/jobsets", JOBSETS),
    ("MutatingWebhookConfiguration", "runtimes.tfadmit.dev", "/mutate/runtimes", RUNTIMES),
    (
        "ValidatingWebhookConfiguration",
        "runtimes.validate.tfadmit.dev",
        "/validate/runtimes",
        RUNTIMES,
    ),
    (
        "ValidatingWebhookConfiguration",
        "trainjobs.validate.tfadmit.dev",
        "/validate/trainjobs",
        TRAINJOBS,
    ),
]
every_hook = pytest.mark.parametrize(
    ("kind", "name", "path", "rule"), HOOKS, ids=[hook[1] for hook in HOOKS]
)
# Which TrainJobs are TensorFlow's cannot be told from their labels.
LABELLED = [hook for hook in HOOKS if hook[3] != TRAINJOBS]
SYSTEM_NAMESPACES = {
    "matchExpressions": [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "kube-node-lease", "tfadmit-system"],
        }
    ]
}
every_labelled_hook = pytest.mark.parametrize(
    ("kind", "name", "path", "rule"), LABELLED, ids=[hook[1] for hook in LABELLED]
)


def webhook(base, kind, name):
    (found,) = (w for w in shipped.one(base, kind)["webhooks"] if w["name"] == name)
    return found


def configurations(base):
    return [item for item in base if item["kind"].endswith("WebhookConfiguration")]


def test_there_are_these_webhooks_and_no_others(base):
    found = [(c["kind"], w["name"]) for c in configurations(base) for w in c["webhooks"]]
    assert sorted(found) == sorted((kind, name) for kind, name, _, _ in HOOKS)
    assert {item["metadata"]["name"] for item in configurations(base)} == {"tfadmit"}


@every_hook
def test_asks_the_service_at_its_own_path(base, kind, name, path, rule):
    assert webhook(base, kind, name)["clientConfig"] == {
        "service": {
            "name": "tfadmit-webhook",
            "namespace": "tfadmit-system",
            "path": path,
            "port": 443,
        }
    }, "no caBundle either: GitOps would put an old one back"


@every_hook
def test_is_asked_about_these_operations(base, kind, name, path, rule):
    assert webhook(base, kind, name)["rules"] == [rule]


@every_labelled_hook
def test_touches_labelled_objects_outside_the_system_namespaces_only(base, kind, name, path, rule):
    found = webhook(base, kind, name)
    assert found["objectSelector"] == {
        "matchLabels": {"trainer.kubeflow.org/framework": "tensorflow"}
    }
    assert found["namespaceSelector"] == SYSTEM_NAMESPACES


@every_labelled_hook
def test_fails_closed_without_side_effects_and_in_time(base, kind, name, path, rule):
    found = webhook(base, kind, name)
    assert found["failurePolicy"] == "Fail"
    assert found["sideEffects"] == "None"
    assert found["matchPolicy"] == "Equivalent"
    assert found["timeoutSeconds"] == 10
    assert found["admissionReviewVersions"] == ["v1"]
    # Only mutating webhooks have the field.
    mutating = kind == "MutatingWebhookConfiguration"
    assert found.get("reinvocationPolicy") == ("IfNeeded" if mutating else None)


def test_all_trainjobs_are_asked_about_and_none_depends_on_the_answer(base):
    found = webhook(base, "ValidatingWebhookConfiguration", "trainjobs.validate.tfadmit.dev")
    assert "objectSelector" not in found
    assert found["namespaceSelector"] == SYSTEM_NAMESPACES
    assert found["failurePolicy"] == "Ignore"
    assert found["timeoutSeconds"] == 2
    assert found["sideEffects"] == "None"
    assert found["matchPolicy"] == "Equivalent"
    assert found["admissionReviewVersions"] == ["v1"]


def test_the_service_leads_to_the_port_that_the_server_listens_on(base):
    service = shipped.one(base, "Service")
    (container,) = shipped.one(base, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert (service["metadata"]["name"], service["metadata"]["namespace"]) == (
        "tfadmit-webhook",
        "tfadmit-system",
    )
    assert service["spec"]["ports"] == [
        {"name": "https", "port": 443, "targetPort": "https"},
        {"name": "metrics", "port": 8080, "targetPort": "metrics"},
    ]
    assert container["ports"] == [
        {"name": "https", "containerPort": 10250},
        {"name": "metrics", "containerPort": 8080},
    ]
