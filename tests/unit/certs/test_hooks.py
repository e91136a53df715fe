"""Which webhooks are ours, and what is sent to the API server about them."""

import pytest

from tfadmit_certs import hooks
from tfadmit_certs.names import Names

NAMES = Names()
SERVICE = {"namespace": "tfadmit-system", "name": "tfadmit-webhook", "path": "/mutate/pods"}


def test_a_webhook_that_names_our_service_is_ours():
    assert NAMES.are_called_by({"service": SERVICE})


@pytest.mark.parametrize(
    "client",
    [
        {},
        {"service": {**SERVICE, "name": "other"}},
        {"service": {**SERVICE, "namespace": "other"}},
        {"service": None, "url": None},
        {"url": "https://tfadmit-webhook.tfadmit-system.svc/mutate/pods"},
    ],
)
def test_any_other_is_not(client):
    assert not NAMES.are_called_by(client)


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("https://10.0.0.1:80", True),
        ("https://10.0.0.1:80/mutate", True),
        ("https://10.0.0.1:8080/mutate", False),
        ("https://10.0.0.1:80.example.com/", False),
    ],
)
def test_a_url_is_ours_up_to_a_whole_segment(url, ours):
    names = Names(url="https://10.0.0.1:80")
    assert names.are_called_by({"url": url}) is ours


def test_a_leaf_stands_for_what_the_api_server_asks_for():
    assert NAMES.hostnames(cluster_domain="corp.example").dns == (
        "tfadmit-webhook.tfadmit-system.svc",
        "tfadmit-webhook.tfadmit-system.svc.corp.example",
    )


@pytest.mark.parametrize(
    ("url", "last"),
    [
        ("https://10.0.0.1:80/x", "10.0.0.1"),
        ("https://[::1]:80", "::1"),
        ("https://[::1]", "::1"),
        ("https://hook.example.com", "hook.example.com"),
    ],
)
def test_and_for_the_host_of_a_url(url, last):
    found = str(Names(url=url).hostnames(cluster_domain="cluster.local")).split(", ")
    assert last in found
    assert len(found) == 3


def configuration():
    item = {
        "metadata": {
            "name": "tfadmit",
            "uid": "u1",
            "resourceVersion": "7",
            "managedFields": [{"manager": "kubectl"}, {"manager": "tfadmit-certs"}],
        },
        "webhooks": [
            {"name": "a", "clientConfig": {"service": SERVICE, "caBundle": "eA=="}},
            {"name": "b", "clientConfig": {"url": "https://elsewhere", "caBundle": "eA=="}},
            {"name": "c", "clientConfig": {"service": SERVICE}},
        ],
    }
    return hooks.read(item, kind="MutatingWebhookConfiguration", names=NAMES)


def test_only_ours_are_read():
    found = configuration()
    assert [(hook.name, hook.trusts) for hook in found.hooks] == [("a", b"x"), ("c", None)]
    assert [hook.name for hook in found.lacks(b"x")] == ["c"]


def test_the_apply_names_the_object_that_was_read_and_the_bundle_alone():
    assert hooks.apply_body(configuration(), pem=b"y") == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "tfadmit", "uid": "u1", "resourceVersion": "7"},
        "webhooks": [
            {"name": "a", "clientConfig": {"caBundle": "eQ=="}},
            {"name": "c", "clientConfig": {"caBundle": "eQ=="}},
        ],
    }


def test_what_is_owned_is_given_up_by_a_guarded_patch():
    assert hooks.disown_patch(configuration()) == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "test", "path": "/metadata/managedFields/1/manager", "value": "tfadmit-certs"},
        {"op": "remove", "path": "/metadata/managedFields/1"},
    ]


@pytest.mark.parametrize("item", [{}, {"webhooks": None, "metadata": None}, {"webhooks": []}])
def test_an_empty_configuration_has_none(item):
    found = hooks.read(item, kind="MutatingWebhookConfiguration", names=NAMES)
    assert (found.hooks, found.owned) == ((), None)
