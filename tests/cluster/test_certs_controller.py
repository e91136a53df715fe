"""`tfadmit certs run` on a real API server: beginnings, changes by others, crashes, the Lease."""

import json
import socket
import sys
import time
from datetime import datetime, timedelta

import pytest
import urllib3
import yaml

from cluster import certs_support
from harness import loopback
from tfadmit_certs import bundle, issue, kube, san, secret, state
from tfadmit_connect import place

ROUNDS = 20
DAY = timedelta(days=1)


@pytest.fixture(name="made")
def make_installation(cluster, namespace):
    made = certs_support.Installation(cluster, namespace)
    yield made
    made.close()


@pytest.fixture(name="running")
def make_running(made):
    made.configure()
    made.start()
    made.wait_until_right()
    return made


@pytest.mark.timeout(600)
def test_three_that_start_at_once_on_an_empty_namespace_agree(cluster):
    whole, own = 0.0, 0.0
    for _ in range(ROUNDS):
        made = certs_support.Installation(cluster, cluster.create_namespace())
        try:
            made.configure()
            began = time.monotonic()
            for name in NAMES:
                made.controller(name).start(ready=lambda: True)
            made.wait_until_right(timeout=30)
            whole, right_at = max(whole, time.monotonic() - began), time.time()
            time.sleep(0.5)
            assert made.trouble() == ""
            assert len(made.view().authority.trusted) == 1
            assert len(logged(made, step="replace-ca")) == 1
            started = min(when(line) for line in logged(made, event="started"))
            own = max(own, right_at - started)
        finally:
            made.close()
            cluster.delete("Namespace", made.namespace)
    print(f"{ROUNDS} starts of 3: one CA each; at worst all was right {whole:.1f} s after the")
    print(f"first process was started, {own:.1f} s after it was up")
    # The rest is Python starting three times on however busy a machine.
    assert own < 5


NAMES = ("a", "b", "c")


def logged(made, **fields):
    """The lines of three controllers that have these fields."""
    lines = [line for name in NAMES for line in made.log(name)]
    return [line for line in lines if fields.items() <= line.items()]


def when(line):
    return datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()


def test_a_wiped_bundle_is_healed(running):
    running.set_bundles(None)
    print(f"wiped caBundles healed in {running.wait_until_right(timeout=5):.2f} s")
    assert_healed(running)


def test_a_replaced_bundle_is_healed(running):
    other = issue.issue_ca(now=certs_support.utc_now(), entropy=issue.system_entropy())
    running.set_bundles(other.certificate)
    print(f"replaced caBundles healed in {running.wait_until_right(timeout=5):.2f} s")
    assert_healed(running)
    assert len(running.view().authority.trusted) == 1


def assert_healed(running):
    healed = [line for line in running.log() if line["event"] == "healed"]
    assert {line["step"] for line in healed} == {"publish"}
    text = metrics(running)
    for kind in certs_support.KINDS:
        assert f'tfadmit_certs_bundles_healed_total{{kind="{kind}"}} 1.0' in text


def metrics(made):
    return urllib3.request("GET", f"{made._controllers[0].metrics}/metrics").data.decode()


@pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_configurations_deleted_and_applied_again_are_healed_without_a_quarrel(made, options):
    made.configure(*options)
    made.start()
    made.wait_until_right()
    for kind in certs_support.KINDS:
        made.cluster.delete(kind, made.names.configuration)
    time.sleep(1)
    # Nobody but the user brings them back.
    assert list(made.configurations()) == []
    made.configure(*options)
    print(f"applied again, healed in {made.wait_until_right(timeout=5):.2f} s")
    made.configure(*options)
    assert made.trouble() == ""
    diff = made.cluster.kubectl("diff", *options, "-f", "-", input=made.manifest(), check=False)
    assert (diff.returncode, diff.stdout) == (0, "")


def test_it_changes_the_bundle_alone_and_owns_nothing_afterwards(made):
    """Whoever owned a field of a webhook would keep others from removing that webhook."""
    made.configure("--server-side")
    before = [made.cluster.get(kind, made.names.configuration) for kind in certs_support.KINDS]
    made.start()
    made.wait_until_right()
    for old in before:
        new = made.cluster.get(old["kind"], made.names.configuration)
        for hook in new["webhooks"]:
            assert hook["clientConfig"].pop("caBundle")
        assert new["webhooks"] == old["webhooks"]
        assert [entry["manager"] for entry in new["metadata"]["managedFields"]] == ["kubectl"]


@pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_a_webhook_that_is_removed_stays_away(made, options):
    made.configure(*options)
    made.start()
    made.wait_until_right()
    before = made.view().authority.pem
    documents = list(yaml.safe_load_all(made.manifest()))
    for item in documents:
        del item["webhooks"][1:]
    made.cluster.kubectl("apply", *options, "-f", "-", input=yaml.safe_dump_all(documents))
    made.wait_until_right()
    time.sleep(1)
    assert [len(item.hooks) for item in made.configurations()] == [1, 1]
    assert [item.hooks[0].trusts for item in made.configurations()] == [before, before]


@pytest.mark.timeout(300)
def test_killed_after_any_write_of_a_rotation_it_completes_and_the_leaf_is_always_trusted(made):
    made.configure()
    first = made.start("first")
    made.wait_until_right()
    first.stop()
    writes = 0
    while True:
        writes += 1
        before = made.view().authority.current.certificate
        made.cluster.kubectl(
            "annotate", "secret", made.names.secret("ca"), "-n", made.namespace,
            "tfadmit.dev/rotate=ca",
        )  # fmt: skip
        killed = made.controller("first", program=[sys.executable, str(KILLED)])
        killed._environ["KILL_AFTER"] = str(writes)
        died = dies_or_completes(made, killed, before)
        view = made.view()
        assert made.untrusted(view) == "", f"after {writes} writes"
        made.start("first")
        made.wait_until_right(timeout=30)
        wait_for_rotation(made, before)
        assert made.untrusted() == ""
        made._controllers[-1].stop()
        if not died:
            break
    print(f"killed after each of {writes - 1} writes: completed, and the leaf was trusted")
    # next; two configurations, twice each; the bundle beside the leaf; promote; leaf.
    assert writes - 1 >= 8


KILLED = certs_support.ROOT / "tests/cluster/certs_killed.py"


def dies_or_completes(made, process, before):
    process.start(ready=lambda: True)
    deadline = time.monotonic() + 40
    while process.running:
        rotated = made.view().authority.current.certificate != before
        if rotated and made.trouble() == "":
            time.sleep(1)
            if process.running:
                process.stop()
                return False
        assert time.monotonic() < deadline, process.tail()
        time.sleep(0.05)
    process.stop()
    return True


def wait_for_rotation(made, before):
    made.cluster.wait(
        lambda: made.view().authority.current.certificate != before and made.trouble() == "",
        timeout=30,
        what="the rotation is complete",
    )


def test_the_other_takes_over_when_the_holder_is_killed(made):
    made.configure()
    one = made.start("one")
    made.wait_until_right()
    made.start("two")
    one.kill()
    began = time.monotonic()
    made.cluster.wait(lambda: holder(made) == "two", timeout=20, what="two holds the Lease")
    print(f"took over {time.monotonic() - began:.1f} s after a kill -9")
    assert time.monotonic() - began <= 15
    made.set_bundles(None)
    made.wait_until_right(timeout=5)


def test_the_other_takes_over_at_once_when_the_holder_ends(made):
    made.configure()
    one = made.start("one")
    made.wait_until_right()
    made.start("two")
    began = time.monotonic()
    one.stop()
    ended = time.monotonic() - began
    made.cluster.wait(lambda: holder(made) == "two", timeout=5, what="two holds the Lease")
    print(f"ended in {ended:.2f} s, taken over {time.monotonic() - began:.2f} s after SIGTERM")


def holder(made):
    found = made.cluster.get("Lease", "tfadmit-certs", made.namespace)
    return found["spec"].get("holderIdentity")


def test_deleted_secrets_come_back_and_servers_stay_trusted(running):
    leaf = running.view().leaf.certificate
    running.cluster.delete("Secret", running.names.secret("ca"), running.namespace)
    running.wait_until_right()
    running.cluster.delete("Secret", running.names.secret("leaf"), running.namespace)
    running.wait_until_right()
    # A server that still shows the first leaf is trusted.
    pem = running.view().authority.pem
    assert (
        bundle.chain_problems(leaf=bundle.render([leaf]), ca=pem, now=certs_support.utc_now()) == ()
    )


@pytest.mark.parametrize(
    ("which", "data"),
    [
        ("ca", {"ca_crt": b"garbage"}),
        ("ca", {"ca_key": b"garbage"}),
        ("ca", {"ca_crt": None, "ca_key": None}),
        ("leaf", {"tls_crt": b"garbage"}),
        ("leaf", {"tls_key": b""}),
    ],
    ids=["CA", "key of the CA", "both", "leaf", "key of the leaf"],
)
def test_what_is_broken_is_replaced_and_told(running, which, data):
    leaf = running.view().leaf.certificate
    running.put(which, **data)
    # Written, then seen: all is right only when the new one has been made.
    running.cluster.wait(
        lambda: [line for line in running.log() if line["level"] == "warning"],
        timeout=5,
        what="a line in the log",
    )
    running.wait_until_right()
    assert (
        bundle.chain_problems(
            leaf=bundle.render([leaf]),
            ca=running.view().authority.pem,
            now=certs_support.utc_now(),
        )
        == ()
    )
    assert "tfadmit_certs_mended_total" in metrics(running)


def test_a_key_of_another_pair_is_replaced(running):
    other = issue.issue_ca(now=certs_support.utc_now(), entropy=issue.system_entropy())
    before = running.view().authority.current.certificate
    running.put("ca", ca_key=other.key)
    wait_for_rotation(running, before)
    (line,) = [
        line for line in running.log() if line["event"] == "step" and line["reason"] == "mismatched"
    ]
    assert line["level"] == "warning"


def test_expired_certificates_at_the_start_are_replaced(made):
    past = certs_support.utc_now() - 400 * DAY
    entropy = issue.system_entropy()
    ca = issue.issue_ca(now=past, lifetime=365 * DAY, entropy=entropy)
    hostnames = san.check(dns=[f"tfadmit-webhook.{made.namespace}.svc"])
    leaf = issue.issue_leaf(ca=ca, names=hostnames, now=past, entropy=entropy)
    certs_support.create(made, "ca", {"ca.crt": ca.certificate, "ca.key": ca.key})
    certs_support.create(
        made, "leaf", {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": ca.certificate}
    )
    made.configure()
    made.set_bundles(ca.certificate)
    made.start()
    print(f"expired CA and leaf at the start: right in {made.wait_until_right(timeout=10):.1f} s")
    assert len(made.view().authority.trusted) == 1


def test_it_ends_at_once_while_the_api_server_does_not_answer(made):
    """A port that takes connections and never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        config = json.loads(made.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{silent.getsockname()[1]}"
        made.kubeconfig.write_text(json.dumps(config))
        process = made.controller()
        process.start(ready=lambda: loopback.healthy(f"{process.metrics}/healthz"))
        began = time.monotonic()
        process._child.terminate()
        process._child.wait(timeout=15)
        print(f"ended {time.monotonic() - began:.1f} s after SIGTERM")
        assert process._child.returncode == 0


def test_writes_that_come_too_late_are_conflicts_and_revive_nothing(made):
    """As the administrator, who may create anything: rights are not what prevents it."""
    made.configure()
    made.start()
    made.wait_until_right()
    made._controllers[0].stop()
    store = secret.Store(
        kube.connect(place.Place(kubeconfig=str(made.cluster.kubeconfig))), names=made.names
    )
    view = store.look()
    assert view.authority
    stale = view.configurations[0]
    store.publish(stale, pem=view.authority.pem + b"\n")
    owned = store.look().configurations[0]
    made.cluster.kubectl("annotate", stale.kind, stale.name, "a=b")
    with pytest.raises(kube.ConflictError):
        store.publish(stale, pem=view.authority.pem)
    with pytest.raises(kube.ConflictError):
        store.disown(owned)
    change = state.Write(which="ca", version=view.authority.version, data={"note": b"x"})
    store.write(change)
    with pytest.raises(kube.ConflictError):
        store.write(change)
    with pytest.raises(kube.ConflictError):
        store.write(state.Write(which="ca", version=None, data={"note": b"x"}))
    made.cluster.delete(stale.kind, stale.name)
    with pytest.raises(kube.ApiError) as caught:
        store.publish(owned, pem=view.authority.pem)
    assert caught.value.status in (404, 409)
    assert [item.kind for item in made.configurations()] == ["ValidatingWebhookConfiguration"]


def test_it_may_read_and_write_no_other_secret(made):
    """The rights as shipped; creation cannot be limited by name."""
    account = f"system:serviceaccount:{made.namespace}:tfadmit-certs"

    def may(verb, what, *options):
        words = ["auth", "can-i", verb, what, "--as", account, "-n", made.namespace, *options]
        return made.cluster.kubectl(*words, check=False).stdout.strip() == "yes"

    assert may("get", "secret/tfadmit-webhook-ca")
    assert not may("get", "secret/other")
    assert not may("list", "secrets")
    assert not may("delete", "secret/tfadmit-webhook-ca")
    assert not may("get", "secret/tfadmit-webhook-ca", "-n", "default")
    for plural in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert may("patch", f"{plural}/{made.names.configuration}")
        assert not may("patch", f"{plural}/tfadmit")
        assert not may("create", plural)
        assert not may("list", plural)
