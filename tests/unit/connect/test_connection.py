"""Where the cluster is, and what is said when that cannot be found out, by each who connects."""

import argparse
import json
import os
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from kubernetes.config import incluster_config

from tfadmit_certs import issue, options
from tfadmit_certs.fault import CertsError
from tfadmit_client import fault as client_fault
from tfadmit_client.cluster import live
from tfadmit_connect import connection, place
from tfadmit_connect.fault import ConnectError


def kubeconfig(**changes):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        **changes,
    }


def server(address, **fields):
    return kubeconfig(clusters=[{"name": "c", "cluster": {"server": address, **fields}}])


def user(**fields):
    return kubeconfig(users=[{"name": "u", "user": fields}])


def program(command, *words):
    return user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": command,
                      "args": list(words), "interactiveMode": "Never"})  # fmt: skip


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def to(path, *, context=None, environ=None, **options):
    where = place.Place(kubeconfig=path, context=context)
    return connection.to(where, connections=34, environ=environ or {}, **options)


def bearer(found):
    return found.api_client.configuration.auth_settings()["BearerToken"]["value"]


def test_a_kubeconfig_is_taken_with_a_connection_for_every_thread(tmp_path):
    found = to(write(tmp_path / "config", kubeconfig()))
    configuration = found.api_client.configuration
    assert configuration.host == "https://127.0.0.1:1"
    assert configuration.connection_pool_maxsize == 34
    assert configuration.retries is False
    assert found.namespace == "default"


def test_another_context_brings_its_own_namespace(tmp_path):
    contexts = [
        {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "one"}},
        {"name": "there", "context": {"cluster": "c", "user": "u", "namespace": "two"}},
    ]
    file = write(tmp_path / "config", kubeconfig(contexts=contexts))
    assert to(file).namespace == "one"
    assert to(file, context="there").namespace == "two"


def test_files_that_a_kubeconfig_names_are_beside_it(tmp_path, monkeypatch):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "token").write_text("secret-of-mine\n")
    now = datetime.now(timezone.utc)
    authority = issue.issue_ca(now=now, entropy=issue.system_entropy())
    (folder / "ca.crt").write_bytes(authority.certificate)
    content = {
        **server("https://127.0.0.1:1", **{"certificate-authority": "ca.crt"}),
        "users": [{"name": "u", "user": {"tokenFile": "token"}}],
    }
    monkeypatch.chdir(tmp_path)
    found = to(write(folder / "config", content))
    assert found.api_client.configuration.ssl_ca_cert == str(folder / "ca.crt")
    for _ in range(2):
        assert bearer(found) == "Bearer secret-of-mine"


def test_a_token_file_counts_more_than_a_stated_token(tmp_path):
    content = user(tokenFile="token", token="stated")
    file = write(tmp_path / "config", content)
    assert bearer(to(file)) == "Bearer stated"
    (tmp_path / "token").write_text("of-the-file")
    assert bearer(to(file)) == "Bearer of-the-file"


def test_a_token_file_is_read_again(tmp_path):
    now = [1000.0]
    (tmp_path / "token").write_text("first")
    found = to(write(tmp_path / "config", user(tokenFile="token")), clock=lambda: now[0])
    (tmp_path / "token").write_text("second\n")
    assert bearer(found) == "Bearer first"
    now[0] += 60
    assert bearer(found) == "Bearer second"


def test_several_files_are_one_as_for_kubectl(tmp_path):
    first = write(tmp_path / "first", kubeconfig(contexts=[], users=[]))
    second = write(tmp_path / "second", kubeconfig(clusters=[]))
    found = to(None, environ={"KUBECONFIG": f"{tmp_path}/gone{os.pathsep}{first}:{second}"})
    assert found.api_client.configuration.host == "https://127.0.0.1:1"


UNUSABLE = {
    "nothing": ("", "file is empty"),
    "half a document": ("[", "while parsing"),
    "text": ("just text", ""),
    "a list": ("[]", ""),
    "empty": ("{}", ""),
    "context gone": (kubeconfig(**{"current-context": "gone"}), "gone"),
    "cluster gone": (kubeconfig(clusters=[]), "Expected object with name c"),
    "contexts of a wrong shape": (kubeconfig(contexts={}), ""),
    "no scheme": (server("127.0.0.1:6443"), "'127.0.0.1:6443' of the context is no address of an"),
    "no port": (server("https://127.0.0.1:99999"), "write https://HOST:PORT"),
    "no host": (server("https://:6443"), "write https://HOST:PORT"),
    "no server": (server(""), "write https://HOST:PORT"),
    "no CA": (server("https://h", **{"certificate-authority": "/gone"}), "/gone"),
    "no proxy": (server("https://h", **{"proxy-url": "junk"}), "Proxy URL had no scheme"),
    "half a token": (user(token="a\nb"), "the token of the context's user has a line feed or"),
    "letters of no token": (user(token="tökén"), "copy it again"),
    "no token": (user(tokenFile="/gone"), "/gone"),
    "an empty token": (user(tokenFile=os.devnull), f"in {os.devnull} (tokenFile of the context's"),
    "no token at all": (user(tokenFile=__file__), "a letter that no token has: copy it again"),
    "no program": (program("gone-it-is"), "it gives no credentials: [Errno 2] No such file"),
    "program fails": (program("false"), "it gives no credentials: exec: process returned 1"),
    "program babbles": (program("echo", "hi"), "failed to decode process output"),
    "groups of nobody": (user(**{"as-groups": ["a"]}), "as-groups of the context's user is no"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_kubeconfig_is_one_sentence(tmp_path, case):
    content, expected = UNUSABLE[case]
    path = write(tmp_path / "config", content)
    with pytest.raises(ConnectError) as caught:
        to(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize("case", ["half a document", "no server", "half a token", "no program"])
def test_client_and_certificates_say_the_same(tmp_path, case):
    path = write(tmp_path / "config", UNUSABLE[case][0])
    arguments = argparse.Namespace(in_cluster=False, kubeconfig=path, context=None)
    with pytest.raises(ConnectError) as said:
        to(path)
    with pytest.raises(client_fault.ClientError) as by_client:
        live.connect(kubeconfig=path)
    with pytest.raises(CertsError) as by_certs:
        options.connect(arguments)
    assert str(by_client.value) == str(by_certs.value) == str(said.value)


@pytest.mark.parametrize("case", ["half a document", "no server", "half a token", "no program"])
def test_the_server_tells_it_among_its_other_faults(tmp_path, case):
    path = write(tmp_path / "config", UNUSABLE[case][0])
    words = ["--kubeconfig", path, "--tls-cert", "gone.crt", "--tls-key", "gone.key"]
    done = subprocess.run(
        [sys.executable, "-m", "tfadmit_webhook", *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"{path}: " in done.stderr
    assert UNUSABLE[case][1] in done.stderr
    assert "gone.crt" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_kubeconfig_is_named(tmp_path):
    with pytest.raises(ConnectError, match="/gone: there is no such kubeconfig: name one with"):
        to(str(tmp_path / "gone"))


def test_a_folder_is_no_kubeconfig(tmp_path):
    with pytest.raises(ConnectError, match="is a folder: name the kubeconfig in it"):
        to(str(tmp_path))


def test_outside_of_a_pod_the_way_out_is_named(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConnectError, match="use --kubeconfig FILE"):
        connection.in_pod(connections=1)


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """The files and variables that a pod has; its token can be written anew."""
    now = datetime.now(timezone.utc)
    authority = issue.issue_ca(now=now, entropy=issue.system_entropy())
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    (tmp_path / "token").write_text("the-pods")
    (tmp_path / "namespace").write_text("team")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr(connection, "_NAMESPACE", tmp_path / "namespace")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


def test_a_pod_connects_by_its_service_account(pod):
    found = connection.in_pod(connections=3)
    configuration = found.api_client.configuration
    assert found.namespace == "team"
    assert configuration.host == "https://[fd00::1]:443"
    assert configuration.connection_pool_maxsize == 3
    assert configuration.retries is False
    assert bearer(found) == "bearer the-pods"


def test_a_token_of_a_pod_that_no_header_takes_is_told(pod):
    (pod / "token").write_text("half\na token")
    with pytest.raises(ConnectError, match="the service account of the pod: the token"):
        connection.in_pod(connections=1)


def test_who_has_named_a_context_is_not_connected_as_a_pod(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConnectError, match=r"~/\.kube/config: there is no such kubeconfig"):
        to(None, context="blue", environ={"KUBERNETES_SERVICE_HOST": "192.0.2.1"})


def test_in_a_pod_without_a_kubeconfig_the_service_account_is_tried(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConnectError, match="works only in a pod with a service account token"):
        to(None, environ={"KUBERNETES_SERVICE_HOST": "192.0.2.1"})


@pytest.mark.parametrize(
    ("said", "flags"),
    [
        ({}, ""),
        ({"context": "blue"}, " --context blue"),
        ({"kubeconfig": "a b"}, " --kubeconfig 'a b'"),
        ({"kubeconfig": "f", "context": "x;y"}, " --kubeconfig f --context 'x;y'"),
    ],
)
def test_options_are_given_on_as_a_shell_takes_them(said, flags):
    assert place.Place(**said).flags == flags
