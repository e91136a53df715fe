"""`tfadmit certs status | rotate | inject` on a real API server, with a controller that runs."""

import json
from datetime import timedelta

import pytest

from cluster import certs_support
from tfadmit_certs import bundle, issue, san


@pytest.fixture(name="made")
def make_installation(cluster, namespace):
    made = certs_support.Installation(cluster, namespace)
    made.configure()
    yield made
    made.close()


@pytest.fixture(name="running")
def make_running(made):
    made.start()
    made.wait_until_right()
    return made


def test_status_of_nothing_says_what_to_do(made):
    done = made.run("status")
    assert (done.returncode, done.stderr) == (1, "")
    assert f"wrong: Secret {made.namespace}/tfadmit-webhook-ca does not exist" in done.stdout
    assert f"kubectl -n {made.namespace} logs deploy/tfadmit-certs" in done.stdout
    assert f"nobody holds the Lease {made.namespace}/tfadmit-certs" in done.stdout


def test_status_of_what_is_well(running):
    done = running.run("status")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "phase    steady"
    assert lines.count("writes   one") == 1
    trusting = [line for line in lines if line.endswith("trusts the leaf")]
    assert len(trusting) == 5
    document = json.loads(running.run("status", "-o", "json").stdout)
    assert document["problems"] == []
    assert document["leaf"]["dnsNames"] == [
        f"tfadmit-webhook.{running.namespace}.svc",
        f"tfadmit-webhook.{running.namespace}.svc.cluster.local",
    ]
    assert [hook["trustsLeaf"] for hook in document["webhooks"]] == [True] * 5


def test_status_tells_of_a_webhook_that_does_not_trust(made):
    controller = made.start()
    made.wait_until_right()
    controller.stop()
    made.set_bundles(None)
    done = made.run("status")
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("wrong: webhook pods.")]
    assert line.endswith("does not trust the leaf: it has no caBundle")


def test_rotate_replaces_the_ca_and_shows_how_it_goes(running):
    before = running.view()
    done = running.run("rotate")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "asked for a new CA"
    assert lines[-1].startswith("done after ")
    assert any(line.startswith("settle ") for line in lines)
    after = running.view()
    assert after.authority.current.certificate != before.authority.current.certificate
    assert after.authority.retired == before.authority.current.certificates
    assert running.trouble() == ""
    # The one before is trusted as long as a leaf of it may live, and may be replaced meanwhile.
    assert "phase    retire" in running.run("status").stdout
    assert running.run("rotate", "--ca").returncode == 0
    assert len(running.view().authority.trusted) == 3


def test_rotate_replaces_the_leaf_alone(running):
    before = running.view()
    done = running.run("rotate", "--leaf")
    assert (done.returncode, done.stderr) == (0, "")
    after = running.view()
    assert after.leaf.certificate != before.leaf.certificate
    assert after.authority.current == before.authority.current
    assert not after.leaf.asked


def test_rotate_refuses_while_one_runs_and_when_nobody_does_it(made):
    controller = made.start()
    made.wait_until_right()
    controller.stop()
    assert made.run("rotate", "--no-wait").stdout == "asked for a new CA\n"
    again = made.run("rotate")
    assert again.returncode == 2
    assert again.stderr == (
        "tfadmit certs rotate: error: a rotation was asked for already: "
        "tfadmit certs status shows it\n"
    )
    made.start("two")
    made.cluster.wait(
        lambda: len(made.view().authority.retired) == 1 and made.trouble() == "",
        what="the rotation that was asked for",
    )


def test_rotate_that_nobody_does_ends_with_a_sentence(made):
    controller = made.start()
    made.wait_until_right()
    controller.stop()
    done = made.run("rotate", "--timeout", "2")
    assert done.returncode == 1
    assert "not done after 2 s" in done.stderr


def test_inject_sets_a_ca_and_warns_when_it_does_not_fit(made, tmp_path):
    ca = make_ca()
    file = tmp_path / "ca.crt"
    file.write_bytes(b"# mine\n" + ca.certificate)
    done = made.run("inject", "--ca-file", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "caBundle of pods.tfadmit.dev (MutatingWebhookConfiguration) is set" in done.stdout
    for configuration in made.configurations():
        assert {hook.trusts for hook in configuration.hooks} == {ca.certificate}
        assert configuration.owned is None
    done = made.run("inject", "--ca-file", str(file), "-o", "json")
    assert len(json.loads(done.stdout)["injected"]) == 5


@pytest.mark.parametrize("kind", ["leaf", "expired", "nothing", "absent"])
def test_inject_refuses_what_is_no_ca(made, tmp_path, kind):
    file = tmp_path / "ca.crt"
    ca, now = make_ca(), certs_support.utc_now()
    old = now - timedelta(days=20)
    content = {
        "leaf": issue.issue_leaf(
            ca=ca, names=san.check(dns=["a.b"]), now=now, entropy=issue.system_entropy()
        ).certificate,
        "expired": make_ca(now=old, lifetime=timedelta(days=10)).certificate,
        "nothing": b"hello",
    }
    if kind in content:
        file.write_bytes(content[kind])
    done = made.run("inject", "--ca-file", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    expected = {
        "leaf": "not one of a CA",
        "expired": "expired on",
        "nothing": "no readable PEM certificate",
        "absent": "No such file",
    }[kind]
    assert expected in done.stderr
    assert all(hook.trusts is None for item in made.configurations() for hook in item.hooks)


def test_inject_refuses_where_the_certificates_manage_themselves(running, tmp_path):
    file = tmp_path / "ca.crt"
    file.write_bytes(make_ca().certificate)
    done = running.run("inject", "--ca-file", str(file))
    assert done.returncode == 2
    assert "would put its own CA back" in done.stderr
    assert running.trouble() == ""


def test_a_ca_of_ones_own_is_used(made):
    ca = make_ca()
    certs_support.create(made, "ca", {"ca.crt": ca.certificate, "ca.key": ca.key})
    made.start()
    made.wait_until_right()
    view = made.view()
    assert view.authority.pem == ca.certificate
    assert bundle.is_issuer(bundle.parse(ca.certificate)[0], view.leaf.certificate)


def test_what_a_person_must_mend_is_refused_with_the_line_that_helps(made):
    ca = make_ca()
    certs_support.create(made, "ca", {"tls.crt": ca.certificate, "tls.key": ca.key})
    made.start()
    done = made.cluster.wait(
        lambda: made.run("status"), until=lambda seen: "holds tls.crt" in seen.stdout, what="status"
    )
    assert done.returncode == 1
    assert "create secret generic tfadmit-webhook-ca --from-file=ca.crt=FILE" in done.stdout
    assert [line["event"] for line in made.log() if line["level"] == "error"] == ["refused"]
    assert made.secret("leaf") is None


def test_a_cluster_that_does_not_answer_is_told_in_a_sentence(made, tmp_path):
    config = json.loads(made.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    made.cluster.kubeconfig, usual = tmp_path / "config", made.cluster.kubeconfig
    made.cluster.kubeconfig.write_text(json.dumps(config))
    try:
        done = made.run("status")
    finally:
        made.cluster.kubeconfig = usual
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def make_ca(*, now=None, lifetime=timedelta(days=3650)):
    return issue.issue_ca(
        now=now or certs_support.utc_now(), lifetime=lifetime, entropy=issue.system_entropy()
    )
