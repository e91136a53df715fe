"""Shipped webhook configurations call this machine; nothing else about them changes."""

from __future__ import annotations

import base64
import copy

import pytest

from harness import webhooks


def configuration(*client_configs):
    return {
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "tfadmit"},
        "webhooks": [
            {"name": f"hook-{i}", "timeoutSeconds": 5, "clientConfig": client_config}
            for i, client_config in enumerate(client_configs)
        ],
    }


def service(path="/mutate/pods"):
    found = {"name": "tfadmit", "namespace": "tfadmit-system", "port": 443}
    return {"service": found if path is None else {**found, "path": path}}


def pointed(shipped):
    return webhooks.pointed_at(shipped, host="127.0.0.1", port=8443, ca=b"PEM")["webhooks"]


def test_every_service_becomes_a_url_with_its_path():
    first, second = pointed(configuration(service(), service("/mutate/runtimes")))
    bundle = base64.b64encode(b"PEM").decode()
    assert first["clientConfig"] == {
        "url": "https://127.0.0.1:8443/mutate/pods",
        "caBundle": bundle,
    }
    assert second["clientConfig"]["url"] == "https://127.0.0.1:8443/mutate/runtimes"


def test_a_service_without_a_path_keeps_none():
    assert pointed(configuration(service(None)))[0]["clientConfig"]["url"].endswith(":8443")


def test_everything_else_and_the_original_stay():
    shipped = configuration(service())
    before = copy.deepcopy(shipped)
    changed = pointed(shipped)[0]
    assert shipped == before
    assert (changed["name"], changed["timeoutSeconds"]) == ("hook-0", 5)


@pytest.mark.parametrize(
    "shipped",
    [configuration(), configuration({"url": "https://elsewhere"}), {"metadata": {"name": "x"}}],
    ids=["no webhooks", "only a url", "no list"],
)
def test_a_configuration_in_which_nothing_was_swapped_is_an_error(shipped):
    with pytest.raises(AssertionError, match="no webhook with a service"):
        pointed(shipped)
