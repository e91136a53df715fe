"""Whom a user of a kubeconfig acts as, in the headers of each request."""

import http.server
import json

import pytest

from harness import loopback
from tfadmit_certs import kube
from tfadmit_client import fault
from tfadmit_client.cluster import live
from tfadmit_connect import connection, place
from tfadmit_webhook.kube import request

USER = {
    "token": "t",
    "as": "jane",
    "as-uid": "7",
    "as-groups": ["team-a", "system:authenticated"],
    "as-user-extra": {"example.com/Scope": ["one", "two"]},
}


@pytest.fixture
def asked():
    """A server that keeps the headers of what it is asked, and its address."""
    kept = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kept.append(self.headers)
            content = b'{"kind": "Secret"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with loopback.serving(server):
        yield kept, f"http://127.0.0.1:{server.server_port}"


def write(path, server, **users):
    """A context for each user; the first is the current one."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(users)),
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in users],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
    }
    path.write_text(json.dumps(content))
    return str(path)


def test_every_way_to_ask_says_whom_the_user_acts_as(asked, tmp_path):
    kept, server = asked
    file = write(tmp_path / "config", server, jane=USER)
    found = live.connect(kubeconfig=file)
    found.secret("team", "x")
    found.wire().request("GET", "/api/v1/namespaces/team/secrets/x")
    where = place.Place(kubeconfig=file)
    kube.connect(where).request("GET", "/api/v1/namespaces/team/secrets/x")
    client = connection.to(where, connections=1).api_client
    request.Getter(client).get("api", "v1", timeout=5).release_conn()
    assert len(kept) == 4
    for headers in kept:
        assert headers["Authorization"].endswith("t")
        assert headers["Impersonate-User"] == "jane"
        assert headers["Impersonate-Uid"] == "7"
        assert headers.get_all("Impersonate-Group") == ["team-a", "system:authenticated"]
        assert headers.get_all("Impersonate-Extra-example.com%2FScope") == ["one", "two"]


def test_another_context_acts_as_its_own_user(asked, tmp_path):
    kept, server = asked
    file = write(tmp_path / "config", server, jane=USER, me={"token": "t"})
    live.connect(kubeconfig=file, context="me").secret("team", "x")
    live.connect(kubeconfig=file, context="jane").secret("team", "x")
    assert [headers.get("Impersonate-User") for headers in kept] == [None, "jane"]


def test_users_of_several_files_are_known(asked, tmp_path, monkeypatch):
    kept, server = asked
    first = write(tmp_path / "first", server, me={"token": "t"})
    second = write(tmp_path / "second", server, jane=USER)
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    live.connect(context="jane").secret("team", "x")
    assert kept[0]["Impersonate-User"] == "jane"


@pytest.mark.parametrize("key", ["as-uid", "as-groups", "as-user-extra"])
def test_groups_without_a_user_are_refused_as_kubectl_does(tmp_path, key):
    file = write(tmp_path / "config", "http://127.0.0.1:1", me={"token": "t", key: USER[key]})
    with pytest.raises(fault.ClientError, match=f"{key} of the context's user is nothing without"):
        live.connect(kubeconfig=file)


def test_a_name_that_no_header_takes_is_refused(tmp_path):
    file = write(tmp_path / "config", "http://127.0.0.1:1", me={"token": "t", "as": "jane\r\nX: y"})
    with pytest.raises(fault.ClientError, match="has a letter that no header of HTTP takes"):
        live.connect(kubeconfig=file)
