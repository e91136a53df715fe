"""Where the cluster is, and what is said when that cannot be found out."""

import json

import pytest

from tfadmit_webhook.kube import connection


def kubeconfig(**changes):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        **changes,
    }


def test_a_kubeconfig_is_taken_with_a_connection_for_every_thread(tmp_path):
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig()))
    api_client = connection.from_kubeconfig(path, connections=34)
    assert api_client.configuration.host == "https://127.0.0.1:6443"
    assert api_client.configuration.connection_pool_maxsize == 34
    assert api_client.configuration.retries is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "file is empty"),
        ("[", "while parsing"),
        ("just text", "config"),
        ("[]", "config"),
        ("{}", "config"),
        (json.dumps(kubeconfig(**{"current-context": "gone"})), "gone"),
        (json.dumps(kubeconfig(clusters=[])), "Expected object with name c"),
        (json.dumps(kubeconfig(contexts={})), "config"),
    ],
)
def test_an_unusable_kubeconfig_is_one_sentence(tmp_path, text, expected):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(connection.ConnectionFault) as caught:
        connection.from_kubeconfig(path, connections=1)
    message = str(caught.value)
    assert message.startswith(f"--kubeconfig {path}: ")
    assert expected in message
    assert "\n" not in message


def test_a_missing_kubeconfig_is_named(tmp_path):
    with pytest.raises(connection.ConnectionFault, match="there is no such file"):
        connection.from_kubeconfig(tmp_path / "gone", connections=1)


def test_outside_of_a_pod_the_way_out_is_named(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(connection.ConnectionFault, match="use --kubeconfig FILE"):
        connection.in_cluster(connections=1)
