"""The API server shows a client certificate to the webhook, and nobody else gets an answer."""

from pathlib import Path

import pytest
import yaml

import builders
from cluster import support
from harness import binaries, tools, webhooks
from harness.api import Api, ApiError
from harness.cluster import Cluster
from harness.controlplane import ControlPlane
from unit.webhook import live_server, pairs

ROOT = Path(__file__).parents[2]
NAME = "kube-apiserver-webhooks"


class WithClientCertificate(ControlPlane):
    """A control plane whose API server reads a file with the credentials for webhooks."""

    configuration: Path

    def _start(self, name, command, *, url):
        if name == "kube-apiserver":
            command = [*command, f"--admission-control-config-file={self.configuration}"]
        return super()._start(name, command, url=url)


def admission(directory, *, client, host):
    """The files that docs/platform-teams.md describes; gives the one that the option names."""
    (directory / "client.crt").write_bytes(client.certificate)
    (directory / "client.key").write_bytes(client.key)
    user = {
        "client-certificate": str(directory / "client.crt"),
        "client-key": str(directory / "client.key"),
    }
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": host, "user": user}]}
    (directory / "webhooks.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    group = "apiserver.config.k8s.io/v1"
    inner = {
        "apiVersion": group,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(directory / "webhooks.kubeconfig"),
    }
    plugins = [
        {"name": name, "configuration": inner}
        for name in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
    ]
    path = directory / "admission.yaml"
    content = {"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="module")
def apiserver():
    return pairs.make_client(NAME)


@pytest.fixture(scope="module")
def server(tmp_path_factory, apiserver):
    """A server that takes reviews from that one client only; it needs no look-ups here."""
    directory = live_server.certificates(tmp_path_factory.mktemp("webhook"))
    (directory / "clients.crt").write_bytes(apiserver.ca)
    running = live_server.LiveServer(
        directory, options=("--client-ca", directory / "clients.crt", "--client-name", NAME)
    )
    with running.stopped_at_the_end():
        yield running


@pytest.fixture(scope="module")
def plane(tmp_path_factory, apiserver, server):
    try:
        found = binaries.find()
    except tools.UnavailableError as error:
        support.give_up(str(error))
    directory = tmp_path_factory.mktemp("plane")
    plane = WithClientCertificate(binaries=found, directory=directory)
    host = f"127.0.0.1:{server.port}"
    plane.configuration = admission(directory, client=apiserver, host=host)
    plane.start()
    api = Api(url=plane.url, ca=plane.ca, token=plane.token)
    cluster = Cluster(
        api=api, kubectl=found.kubectl, kubeconfig=plane.kubeconfig, directory=directory
    )
    try:
        yield cluster
    finally:
        api.close()
        plane.stop()


def installed(cluster, server):
    """The shipped configuration for pods, pointed at the server."""
    hooks = yaml.safe_load_all((ROOT / "deploy/base/webhooks.yaml").read_text())
    (shipped,) = (hook for hook in hooks if hook["kind"] == "MutatingWebhookConfiguration")
    ca = (server.directory / "ca.crt").read_bytes()
    cluster.apply(webhooks.pointed_at(shipped, host="127.0.0.1", port=server.port, ca=ca))


def tried(cluster):
    """What the API server says to a labelled pod that belongs to no cluster."""
    try:
        cluster.create(support.pod("default", name="lonely"), dry_run=True)
    except ApiError as error:
        return error.message
    return "created"


def test_the_api_server_is_let_in_by_its_certificate_and_nobody_else_is(plane, server):
    installed(plane, server)
    said = plane.wait(
        lambda: tried(plane),
        until=lambda words: "nothing says which tasks belong to its cluster" in words,
        what="the API server calls the webhook with its certificate",
    )
    assert 'admission webhook "pods.tfadmit.dev" denied the request' in said
    assert server.metric('tfadmit_rejected_requests_total{status="403"}') is None
    body = builders.body(builders.make_review(builders.make_pod()))
    status, _, text = live_server.ask(server.connect(), "POST", "/mutate/pods", body)
    assert (status, text) == (403, "reviews take a client certificate of the CA in --client-ca\n")


def test_without_its_certificate_the_api_server_is_refused_like_anybody(plane, server):
    """The same clients' CA, at an address for which the API server has no credentials."""
    directory = server.directory
    options = ("--client-ca", directory / "clients.crt")
    other = live_server.LiveServer(directory, options=options)
    with other.stopped_at_the_end():
        installed(plane, other)
        said = plane.wait(
            lambda: tried(plane),
            until=lambda words: "failed calling webhook" in words,
            what="the API server calls the other server",
        )
        assert "reviews take a client certificate" in said
        assert other.metric('tfadmit_rejected_requests_total{status="403"}') > 0
    installed(plane, server)
