"""The real server takes certificates from files and from a watched Secret, under load."""

import base64
import contextlib
import http.client
import itertools
import os
import pathlib
import socket
import ssl
import threading
import time
from datetime import timedelta

import pytest

import builders
from tfadmit_certs import bundle, issue
from unit.webhook import live_server, pairs

SECRETS = "/api/v1/namespaces/tfadmit-system/secrets"
WATCHED = ("--tls-secret", "tfadmit-system/hook")
REVIEW = builders.body(builders.make_review(builders.make_pod(index=2)))
OBJECTS = (builders.make_jobset(),)


def make(**fields):
    return pairs.make(**{"ip": "127.0.0.1", "dns": "localhost"} | fields)


def wait_for(condition, *, seconds=20):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


def secret(pair, **data):
    content = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca} | data
    return {
        "metadata": {"name": "hook", "namespace": "tfadmit-system", "uid": "u1"},
        "data": {key: base64.b64encode(value).decode() for key, value in content.items()},
    }


def shown(server):
    """The serial number that a new handshake shows, whoever signed it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        context = ssl._create_unverified_context()
        with context.wrap_socket(plain) as connection:
            found = connection.getpeercert(binary_form=True)
    assert found
    certificate = ssl.DER_cert_to_PEM_cert(found)
    return bundle.describe(bundle.parse(certificate.encode())[0]).serial


@contextlib.contextmanager
def serving(directory, fake, *, options=(), **fields):
    (directory / "ca.crt").write_bytes(make().ca)
    server = live_server.LiveServer(
        directory,
        source=("--kubeconfig", fake.kubeconfig),
        identity=WATCHED,
        options=options,
        **fields,
    )
    with server.stopped_at_the_end():
        yield server
        assert server.terminate() == 0
        assert not [line for line in server.lines if "traceback" in line]


@pytest.fixture
def secrets(fake_cluster):
    return fake_cluster.collection(SECRETS)


def test_before_there_is_a_secret_it_waits_and_says_so_and_takes_it_at_once(
    tmp_path, fake_cluster, secrets
):
    with serving(tmp_path, fake_cluster, waits=False) as server:
        wait_for(lambda: server.events("certificate"))
        status, text = server.plain("/readyz")
        assert status == 503
        assert "no certificate to show: Secret tfadmit-system/hook does not exist" in text
        assert server.plain("/healthz") == (200, "ok\n")
        assert not server.events("listening")[1:], "nobody is let in without a certificate"
        pair, put = make(), time.monotonic()
        secrets.put_item(secret(pair))
        assert shown(server) == pair.serial
        print(f"\nfirst handshake {time.monotonic() - put:.2f} s after the Secret was created")
        wait_for(lambda: server.plain("/readyz")[0] == 200)
        assert server.metric('tfadmit_certificate_not_after_seconds{certificate="leaf"}') == (
            pair.facts.not_after.timestamp()
        )
        assert server.metric('tfadmit_certificate_not_after_seconds{certificate="ca"}')


def test_the_one_secret_is_asked_for_by_its_name(tmp_path, fake_cluster, secrets):
    secrets.put_item(secret(make()))
    with serving(tmp_path, fake_cluster):
        (listed,) = secrets.questions("list")
        watched = wait_for(lambda: secrets.questions("watch"))[0]
        assert listed["fieldSelector"] == watched["fieldSelector"] == "metadata.name=hook"


def test_whatever_happens_to_the_secret_a_good_certificate_stays(tmp_path, fake_cluster, secrets):
    first, other = make(), make()
    secrets.put_item(secret(first))
    with serving(tmp_path, fake_cluster) as server:
        kept = server_connection(server)
        healthy(kept)
        for number, (content, words) in enumerate(
            [
                (secret(first, **{"tls.crt": b"broken"}), "tls.crt of Secret tfadmit-system/hook"),
                (secret(first, **{"tls.key": other.key}), "tls.key of Secret tfadmit-system/hook"),
                (secret(make(now=first.facts.not_before - timedelta(days=8))), "expired on"),
                ({"metadata": secret(first)["metadata"]}, "holds no readable PEM"),
            ]
        ):
            secrets.put_item(content)
            told = wait_for(lambda count=number: server.events("certificate")[count + 1 :])
            assert words in told[0]["message"]
            assert shown(server) == first.serial
        secrets.delete("hook")
        told = wait_for(lambda: server.events("certificate")[5:])
        assert "Secret tfadmit-system/hook does not exist" in told[0]["message"]
        assert shown(server) == first.serial
        assert server.plain("/readyz")[0] == 200
        secrets.put_item(secret(other))
        wait_for(lambda: shown(server) == other.serial)
        healthy(kept)
        kept.close()
        assert server.metric('tfadmit_certificate_reloads_total{outcome="failed"}') == 5
        assert server.metric('tfadmit_certificate_reloads_total{outcome="used"}') == 2


def server_connection(server):
    return http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=ssl._create_unverified_context(), timeout=10
    )


def healthy(connection):
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    assert answer.read() == b"ok\n"


def test_a_missing_right_is_named_by_readiness(tmp_path, fake_cluster, secrets):
    def forbid(handler):
        secrets.fail("list", 403, forbid)
        handler.answer(403, {"message": 'User "x" cannot list resource "secrets"'})

    secrets.fail("list", 403, forbid)
    with serving(tmp_path, fake_cluster, waits=False) as server:
        wait_for(lambda: "may not list the Secret" in server.plain("/readyz")[1])


# --- files --------------------------------------------------------------------------------------


def test_an_expired_certificate_at_the_start_is_waited_out_and_never_shown(tmp_path):
    live_server.certificates(tmp_path)
    old = make(now=make().facts.not_before - timedelta(days=8))
    (tmp_path / "tls.crt").write_bytes(old.certificate)
    (tmp_path / "tls.key").write_bytes(old.key)
    server = live_server.LiveServer(tmp_path, objects=OBJECTS, waits=False)
    with server.stopped_at_the_end():
        status, text = server.plain("/readyz")
        assert status == 503
        assert "the certificate expired on" in text
        live_server.certificates(tmp_path)
        assert server.review()["allowed"]
        wait_for(lambda: server.plain("/readyz")[0] == 200)
        assert server.terminate() == 0


def test_a_renewed_certificate_is_shown_and_open_connections_stay(tmp_path):
    server = live_server.LiveServer(live_server.certificates(tmp_path), objects=OBJECTS)
    with server.stopped_at_the_end():
        first, kept = shown(server), server.connect()
        healthy(kept)
        live_server.certificates(tmp_path)
        wait_for(lambda: shown(server) != first)
        healthy(kept)
        kept.close()
        server.terminate()
        assert [line["used"] for line in server.events("certificate")] == [True, True]


def test_hundreds_of_renewals_under_load_fail_no_call_and_leave_nothing_behind(
    tmp_path, fake_cluster, secrets
):
    """Kept connections and new handshakes at once; a reload every 10 ms."""
    authority = issue.issue_ca(now=make().facts.not_before, entropy=issue.system_entropy())
    rotation = [make(authority=authority) for _ in range(8)]
    fake_cluster.put()
    secrets.put_item(secret(rotation[0]))
    with serving(tmp_path, fake_cluster) as server:
        trust = ssl.create_default_context(cadata=authority.certificate.decode())
        load = Load(server, trust)
        warm_up = reload(secrets, itertools.islice(itertools.cycle(rotation), 1, 100))
        before = usage(server.process.pid)
        count = reload(secrets, itertools.islice(itertools.cycle(rotation), 4, 400))
        last = rotation[(3 + count) % len(rotation)]
        wait_for(lambda: shown(server) == last.serial)
        load.stop()
        wait_for(lambda: server.metric("tfadmit_connections") == 0)
        after = usage(server.process.pid)
        print(
            f"\n{warm_up + count} reloads, {load.kept} kept and {load.new} new connections' calls"
        )
        print(f"before {before}, after {after}")
        used = server.metric('tfadmit_certificate_reloads_total{outcome="used"}')
        assert load.faults == []
        assert load.kept > 100
        assert load.new > 100
        assert used > 300
        assert after["fds"] <= before["fds"]
        assert after["rss"] - before["rss"] < 20 * 2**20


def reload(secrets, pairs_in_order):
    count = 0
    for pair in pairs_in_order:
        secrets.put_item(secret(pair))
        count += 1
        time.sleep(0.01)
    return count


def usage(pid):
    process = pathlib.Path(f"/proc/{pid}")
    pages = int((process / "statm").read_text().split()[1])
    return {
        "rss": pages * os.sysconf("SC_PAGE_SIZE"),
        "fds": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
    }


class Load:
    """Two clients that keep their connection and two that make a new one for each review."""

    def __init__(self, server, trust):
        self._server, self._trust = server, trust
        self._stopped = threading.Event()
        self.kept, self.new, self.faults = 0, 0, []
        self._threads = [
            threading.Thread(target=self._run, args=(keeps,)) for keeps in (True, False) * 2
        ]
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, keeps):
        connection = None
        while not self._stopped.is_set():
            try:
                connection = connection or http.client.HTTPSConnection(
                    "127.0.0.1", self._server.port, context=self._trust, timeout=10
                )
                connection.request(
                    "POST", "/mutate/pods", REVIEW, {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                assert answer.status == 200
                assert b'"allowed":true' in answer.read()
            except Exception as error:  # noqa: BLE001 - counted
                self.faults.append(repr(error))
                connection = None
            if keeps:
                self.kept += 1
            else:
                self.new += 1
                if connection:
                    connection.close()
                connection = None
        if connection:
            connection.close()
