"""Whom the real server trusts, and who trusts it: clients' certificates and caBundles."""

import base64
import ssl
import time

import pytest

import builders
from unit.webhook import live_server, pairs

REVIEW = builders.body(builders.make_review(builders.make_pod(index=2)))
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


def wait_for(condition, *, seconds=20):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found


# --- clients' certificates ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def apiserver():
    return pairs.make_client("kube-apiserver")


@pytest.fixture
def server(tmp_path, apiserver):
    live_server.certificates(tmp_path)
    (tmp_path / "clients.crt").write_bytes(apiserver.ca)
    running = live_server.LiveServer(
        tmp_path,
        objects=[builders.make_jobset()],
        options=(
            *("--client-ca", tmp_path / "clients.crt"),
            *("--client-name", "kube-apiserver", "--client-name", "front-proxy"),
        ),
    )
    with running.stopped_at_the_end():
        yield running
        assert running.terminate() == 0
        assert not [line for line in running.lines if "traceback" in line]


def connect(server, client=None):
    server.trust = ssl.create_default_context(cafile=server.directory / "ca.crt")
    if client:
        server.trust.load_cert_chain(client.write(server.directory))
    return server.connect()


def post(server, client=None):
    return live_server.ask(connect(server, client), "POST", "/mutate/pods", REVIEW)


def test_probes_need_no_certificate_and_reviews_do(server, apiserver):
    connection = connect(server)
    assert live_server.ask(connection, "GET", "/healthz")[0] == 200
    status, _, text = post(server)
    assert (status, text) == (403, "reviews take a client certificate of the CA in --client-ca\n")
    status, _, text = post(server, apiserver)
    assert status == 200
    assert '"allowed":true' in text
    assert server.metric('tfadmit_rejected_requests_total{status="403"}') == 1


def test_another_name_of_the_same_ca_is_refused(server, apiserver):
    other = pairs.make_client("kubelet", authority=apiserver.authority)
    status, _, text = post(server, other)
    assert (status, text) == (403, "a client certificate of 'kubelet' may not send reviews\n")


@pytest.mark.parametrize(
    "make",
    [lambda: pairs.make_client("kube-apiserver"), pairs.make],
    ids=["another CA", "a server's certificate of another CA"],
)
def test_a_certificate_of_another_ca_does_not_get_through_the_handshake(server, make):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        post(server, make())


def test_other_cas_of_clients_are_taken_while_it_runs(server, apiserver):
    renewed = pairs.make_client("front-proxy")
    path = server.directory / "clients.crt"
    path.write_bytes(b"broken")
    wait_for(lambda: any("--client-ca" in line["message"] for line in server.events("certificate")))
    assert post(server, apiserver)[0] == 200, "the last good ones stay"
    path.write_bytes(apiserver.ca + renewed.ca)
    wait_for(lambda: accepted(server, renewed))
    assert post(server, apiserver)[0] == 200
    path.write_bytes(renewed.ca)
    wait_for(lambda: not accepted(server, apiserver))
    assert post(server, renewed)[0] == 200


def accepted(server, client):
    try:
        return post(server, client)[0] == 200
    except (ssl.SSLError, ConnectionError):
        return False


# --- caBundles ----------------------------------------------------------------------------------


def configuration(ca):
    client = {"url": "https://127.0.0.1:1/mutate/pods"}
    if ca:
        client["caBundle"] = base64.b64encode(ca).decode()
    return {"webhooks": [{"name": "pods.tfadmit.dev", "clientConfig": client}]}


def put(fake, kind, content):
    fake.single[f"{CONFIGURATIONS}/{kind}webhookconfigurations/tfadmit"] = content


def test_it_is_ready_when_both_configurations_trust_it_and_stays_so(tmp_path, fake_cluster):
    live_server.certificates(tmp_path)
    ca = (tmp_path / "ca.crt").read_bytes()
    server = live_server.LiveServer(
        tmp_path,
        source=("--kubeconfig", fake_cluster.kubeconfig),
        options=("--webhook-configuration", "tfadmit"),
    )
    with server.stopped_at_the_end():
        wait_for(lambda: "does not exist" in server.plain("/readyz")[1])
        status, text = server.plain("/readyz")
        assert status == 503
        assert "the mutating configuration tfadmit does not exist" in text
        put(fake_cluster, "mutating", configuration(ca))
        put(fake_cluster, "validating", configuration(pairs.make().ca))
        wait_for(lambda: "validating configuration tfadmit does not trust" in ready(server))
        assert "mutating" not in ready(server)
        assert server.metric('tfadmit_ca_bundle_trusted{configuration="mutating"}') == 1
        assert server.metric('tfadmit_ca_bundle_trusted{configuration="validating"}') == 0
        assert server.metric('tfadmit_ca_bundle_bytes{configuration="mutating"}') == len(ca)
        put(fake_cluster, "validating", configuration(ca))
        wait_for(lambda: server.plain("/readyz")[0] == 200)
        assert server.metric('tfadmit_certificate_not_after_seconds{certificate="ca"}')
        put(fake_cluster, "mutating", configuration(None))
        wait_for(lambda: server.metric('tfadmit_ca_bundle_trusted{configuration="mutating"}') == 0)
        assert server.plain("/readyz")[0] == 200
        assert server.terminate() == 0
        told = [(line["configuration"], line["trusted"]) for line in server.events("caBundle")]
        assert told[-2:] == [("validating", True), ("mutating", False)]


def ready(server):
    return server.plain("/readyz")[1]
