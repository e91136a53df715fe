"""Who may do what: every rule of every role, as literals, so that none grows unseen."""

from __future__ import annotations

import pytest

from manifests import shipped

HOOKS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
READ = ["get", "list", "watch"]


def rule(group, resources, verbs, *, names=None):
    found = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return found | ({"resourceNames": names} if names else {})


SERVER = {
    ("ClusterRole", "tfadmit-webhook"): [
        rule("jobset.x-k8s.io", ["jobsets"], READ),
        rule("batch", ["jobs"], ["get"]),
        rule("trainer.kubeflow.org", ["clustertrainingruntimes", "trainingruntimes"], ["get"]),
        rule("admissionregistration.k8s.io", HOOKS, ["get"], names=["tfadmit"]),
        rule("", ["namespaces"], ["get"]),
    ]
}
SELF_MANAGED = {
    **SERVER,
    ("Role", "tfadmit-webhook"): [rule("", ["secrets"], READ, names=["tfadmit-webhook-tls"])],
    ("ClusterRole", "tfadmit-certs"): [
        rule("admissionregistration.k8s.io", HOOKS, ["get", "watch", "patch"], names=["tfadmit"])
    ],
    ("Role", "tfadmit-certs"): [
        rule(
            "",
            ["secrets"],
            ["get", "watch", "update"],
            names=["tfadmit-webhook-ca", "tfadmit-webhook-tls"],
        ),
        rule(
            "coordination.k8s.io", ["leases"], ["get", "watch", "update"], names=["tfadmit-certs"]
        ),
        rule("", ["secrets"], ["create"]),
        rule("coordination.k8s.io", ["leases"], ["create"]),
    ],
}


def roles(objects):
    return {
        (item["kind"], item["metadata"]["name"]): item["rules"]
        for item in objects
        if item["kind"] in {"Role", "ClusterRole"}
    }


@pytest.mark.parametrize(
    ("overlay_name", "expected"),
    [("self_managed", SELF_MANAGED), ("cert_manager", SERVER), ("files", SERVER)],
)
def test_the_rights_are_these(request, overlay_name, expected):
    assert roles(request.getfixturevalue(overlay_name)) == expected


def test_nothing_is_granted_by_a_wildcard(overlay):
    for rules in roles(overlay).values():
        for granted in rules:
            assert "*" not in [*granted["apiGroups"], *granted["resources"], *granted["verbs"]]
            assert "nonResourceURLs" not in granted


def test_whoever_writes_may_write_named_objects_only_but_for_creation(overlay):
    """Authorization does not see the name of what is created."""
    for rules in roles(overlay).values():
        for granted in rules:
            writes = set(granted["verbs"]) - {*READ, "create"}
            assert not writes or granted["resourceNames"]
            if "create" in granted["verbs"]:
                assert granted["verbs"] == ["create"]


def test_each_role_is_bound_to_the_account_of_its_own_process(overlay):
    bindings = [item for item in overlay if item["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    bound = {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings}
    assert bound == set(roles(overlay))
    for binding in bindings:
        assert binding["kind"] == binding["roleRef"]["kind"] + "Binding"
        assert binding["subjects"] == [
            {
                "kind": "ServiceAccount",
                "name": binding["roleRef"]["name"],
                "namespace": "tfadmit-system",
            }
        ]


def test_each_process_has_an_account_and_takes_its_token_itself(overlay):
    accounts = [item for item in overlay if item["kind"] == "ServiceAccount"]
    processes = [item["metadata"]["name"] for item in overlay if item["kind"] == "Deployment"]
    assert sorted(a["metadata"]["name"] for a in accounts) == sorted(processes)
    assert all(account["automountServiceAccountToken"] is False for account in accounts)
    for name in processes:
        pod = shipped.pod_spec(overlay, name)
        assert pod["serviceAccountName"] == name
        assert pod["automountServiceAccountToken"] is True


def test_the_server_may_neither_read_the_ca_nor_write_anything(self_managed):
    granted = [
        rule
        for (_, name), rules in roles(self_managed).items()
        if name == "tfadmit-webhook"
        for rule in rules
    ]
    assert all(set(rule["verbs"]) <= set(READ) for rule in granted)
    named = [rule["resourceNames"] for rule in granted if "secrets" in rule["resources"]]
    assert named == [["tfadmit-webhook-tls"]]
