"""Look-ups and the watch against a small API server over HTTP."""

import json
import logging
import socket
import threading
import time

import pytest
from kubernetes import client

import builders
from tfadmit_webhook import facts
from tfadmit_webhook.kube import api, labels, reader, watch
from unit.webhook import fake_api

KEY = {"namespace": "team", "name": "mnist"}


class Monitor:
    def __init__(self):
        self.lookups, self.objects, self.up, self.said = [], None, None, 0

    def looked_up(self, *, kind, source, outcome, seconds=None):
        self.lookups.append((kind, source, outcome))

    def cache_changed(self, *, objects):
        self.objects = objects

    def watch_changed(self, *, up):
        self.up = up

    def heard(self):
        self.said += 1


@pytest.fixture
def fake():
    server = fake_api.FakeApi()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def monitor():
    return Monitor()


@pytest.fixture
def connect(fake, monitor):
    """Makes clusters that read from the small API server; all are stopped at the end."""
    made = []

    def make(*, url=None):
        configuration = client.Configuration(host=url or fake.url)
        configuration.proxy = None
        configuration.retries = False
        api_client = client.ApiClient(configuration)
        timing = watch.Timing(first_pause=0.005)
        cluster = reader.Cluster(api.Api(api_client), monitor=monitor, timing=timing)
        made.append((cluster, api_client))
        return cluster

    yield make
    for cluster, api_client in made:
        cluster.stop()
        api_client.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "watch"]


def until(condition):
    end = time.monotonic() + 5
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen in 5 s"
        time.sleep(0.002)
    return value


def size(cluster, name="mnist"):
    found = cluster.cached_jobset(namespace="team", name=name)
    return found and sum(group.size for group in found.groups)


def started(connect):
    cluster = connect()
    cluster.start()
    until(lambda: not cluster.failing())
    return cluster


# --- the watch


def test_all_jobsets_are_listed_before_the_cluster_is_ready(fake, connect, monitor):
    fake.put()
    cluster = connect()
    assert cluster.failing() == ["JobSets are not listed yet: asking"]
    cluster.start()
    until(lambda: not cluster.failing())
    assert size(cluster) == 3
    assert monitor.objects == 1
    until(lambda: monitor.up)


def test_a_long_list_is_read_in_pages(fake, connect, monkeypatch):
    monkeypatch.setattr(watch, "_PAGE", 2)
    for number in range(5):
        fake.put(f"job-{number}")
    cluster = started(connect)
    assert all(size(cluster, f"job-{number}") for number in range(5))
    assert [query.get("continue") for query in fake.questions("list")] == [None, "2", "4"]


def test_pages_that_grew_old_are_read_again_in_one_piece(fake, connect, monkeypatch):
    monkeypatch.setattr(watch, "_PAGE", 2)
    for number in range(5):
        fake.put(f"job-{number}")
    fake.fail("list", 410, {"message": "the continue token is too old"})
    cluster = started(connect)
    assert size(cluster, "job-4")
    assert "limit" not in fake.questions("list")[-1]


def test_what_happens_reaches_the_cache(fake, connect):
    cluster = started(connect)
    fake.put()
    until(lambda: size(cluster) == 3)
    fake.put(uid="jobset-uid-1", subdomain="sub")
    until(lambda: cluster.cached_jobset(**KEY).subdomain == "sub")
    fake.delete()
    until(lambda: size(cluster) is None)


def test_a_watch_asks_for_bookmarks_and_ends_by_itself(fake, connect):
    started(connect)
    (query,) = until(lambda: fake.questions("watch"))
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 600


def test_a_watch_that_ended_goes_on_from_the_last_bookmark(fake, connect):
    cluster = started(connect)
    until(lambda: fake.questions("watch"))
    fake.say("BOOKMARK", {"metadata": {"resourceVersion": "4711"}}, version=4711)
    fake.version = 4711
    fake.end_watches()
    until(lambda: fake.questions("watch")[-1]["resourceVersion"] == "4711")
    fake.put()
    until(lambda: size(cluster) == 3)
    assert len(fake.questions("list")) == 1


@pytest.mark.parametrize("how", ["as a status", "as an event"])
def test_a_version_that_is_gone_leads_to_a_new_list(fake, connect, how):
    cluster = started(connect)
    until(lambda: fake.questions("watch"))
    fake.objects["missed"] = builders.make_jobset(name="missed")  # an event that nobody sends
    if how == "as a status":
        fake.oldest = fake.version + 1
        fake.version += 1
        fake.end_watches()
    else:
        fake.say("ERROR", {"code": 410, "message": "too old"})
    until(lambda: size(cluster, "missed"))


def test_a_restart_of_the_api_server_is_survived_and_told(fake, connect, monitor, caplog):
    caplog.set_level(logging.INFO, "tfadmit")
    cluster = started(connect)
    until(lambda: monitor.up)
    fake.stop()
    until(lambda: monitor.up is False)
    assert not cluster.failing()  # live answers take the place of the watch
    fake.start()
    until(lambda: monitor.up)
    fake.put()
    until(lambda: size(cluster) == 3)
    told = [record.fields["up"] for record in caplog.records]
    assert (told[0], told[-1]) == (False, True)


def test_a_missing_jobset_kind_is_no_reason_to_wait_and_is_noticed_later(
    fake, connect, monkeypatch, caplog
):
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.01)
    fake.installed = False
    cluster = started(connect)
    until(lambda: len(fake.questions("list")) > 3)
    warnings = [record.fields["message"] for record in caplog.records]
    assert len(warnings) == 1, "said once"
    assert warnings[0].startswith("JobSet is not installed")
    fake.installed = True
    fake.put()
    until(lambda: size(cluster) == 3)


def test_a_missing_right_is_named_until_it_is_granted(fake, connect, monkeypatch):
    monkeypatch.setattr(watch, "_LONGEST_PAUSE", 0.01)
    forbidden = threading.Event()

    def answer(handler):
        if not forbidden.wait(0.001):
            fake.fail("list", 403, answer)  # the next question too
        handler.answer(403, {"message": 'User "x" cannot list resource'})

    fake.fail("list", 403, answer)
    cluster = connect()
    cluster.start()
    until(lambda: "asking" not in cluster.failing()[0])
    (line,) = cluster.failing()
    assert line == (
        "JobSets are not listed yet: asked for all JobSets: may not list jobsets of "
        'jobset.x-k8s.io (deploy/base/rbac.yaml grants it): User "x" cannot list resource'
    )
    forbidden.set()
    until(lambda: not cluster.failing())


@pytest.mark.parametrize(
    "body", ["no json", "[]", {"items": "none"}, {"items": [None, 3]}, {}], ids=str
)
def test_a_senseless_list_does_not_end_the_thread(fake, connect, body):
    fake.fail("list", 200, body)
    cluster = started(connect)
    fake.end_watches()
    fake.oldest = fake.version = fake.version + 5
    fake.put()
    until(lambda: size(cluster) == 3)


@pytest.mark.parametrize("event", [None, 3, "text", {"metadata": None}, {"metadata": {}}], ids=str)
def test_a_senseless_event_does_not_end_the_thread(fake, connect, monitor, event):
    cluster = started(connect)
    until(lambda: fake.questions("watch"))
    fake.say("ADDED", event)
    fake.put()
    until(lambda: size(cluster) == 3)
    assert monitor.objects == 1


def test_a_fault_of_ours_does_not_end_the_thread(fake, connect, monkeypatch, caplog):
    broken = [True]
    real = watch.Watch._list

    def once(self):
        if broken.pop() if broken else False:
            raise ZeroDivisionError
        real(self)

    monkeypatch.setattr(watch.Watch, "_list", once)
    started(connect)
    assert any(record.exc_info for record in caplog.records)


def test_stopping_takes_no_time_while_nothing_happens(fake, connect, monitor):
    cluster = started(connect)
    until(lambda: monitor.up)
    began = time.monotonic()
    cluster.stop()
    assert time.monotonic() - began < 1
    cluster.stop()


def test_pauses_grow_and_differ():
    first = [watch.pause(failures, first=0.5, longest=30.0, chance=1.0) for failures in range(9)]
    assert first == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert watch.pause(3, first=0.5, longest=30.0, chance=0.0) == 1.0


# --- live look-ups


def test_a_live_answer_is_given_and_remembered(fake, connect, monitor):
    fake.put()
    cluster = connect()
    assert cluster.live_jobset(**KEY, timeout=2).uid == "jobset-uid-1"
    assert size(cluster) == 3
    assert monitor.lookups == [("jobset", "live", "found"), ("jobset", "cache", "hit")]


def test_no_such_object_is_none(connect, monitor):
    cluster = connect()
    assert cluster.live_jobset(**KEY, timeout=2) is None
    assert cluster.live_job(**KEY, timeout=2) is None
    assert cluster.cached_jobset(**KEY) is None
    assert monitor.lookups[0] == ("jobset", "live", "missing")


def test_a_job_is_looked_up(fake, connect):
    fake.objects["plain"] = builders.make_job()
    found = connect().live_job(namespace="team", name="plain", timeout=2)
    assert (found.kind, found.uid, found.groups[0].size) == ("Job", "job-uid-1", 3)
    assert fake.asked


RUNTIME = {"namespace": "", "name": "tensorflow-distributed"}


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        ("ClusterTrainingRuntime", "", "clustertrainingruntimes/tf"),
        ("TrainingRuntime", "team", "namespaces/team/trainingruntimes/tf"),
    ],
)
def test_a_runtime_is_looked_up_by_its_kind(fake, connect, monitor, kind, namespace, path):
    fake.objects["tf"] = builders.make_runtime()
    found = connect().runtime(kind=kind, namespace=namespace, name="tf", timeout=2)
    assert found == builders.make_runtime()
    assert fake.paths == [f"/apis/trainer.kubeflow.org/v1alpha1/{path}"]
    assert monitor.lookups == [(kind.lower(), "live", "found")]


def test_a_runtime_that_does_not_exist_is_none(connect, monitor):
    assert connect().runtime(kind="ClusterTrainingRuntime", **RUNTIME, timeout=2) is None
    assert monitor.lookups == [("clustertrainingruntime", "live", "missing")]


@pytest.mark.parametrize(
    ("kind", "namespace", "place"),
    [("ClusterTrainingRuntime", "", "tf"), ("TrainingRuntime", "team", "team/tf")],
)
def test_a_runtime_that_may_not_be_read_is_a_failure(fake, connect, kind, namespace, place):
    fake.fail("get", 403, {"message": "no"})
    with pytest.raises(facts.LookupFailedError) as caught:
        connect().runtime(kind=kind, namespace=namespace, name="tf", timeout=2)
    assert str(caught.value) == (
        f"asked for {kind} {place}: may not get {kind.lower()}s of trainer.kubeflow.org "
        "(deploy/base/rbac.yaml grants it): no; try again"
    )


def test_without_time_no_runtime_is_asked_for(fake, connect):
    message = "no time was left to ask the API server for clustertrainingruntime tensorflow-dist"
    with pytest.raises(facts.LookupFailedError, match=message):
        connect().runtime(kind="ClusterTrainingRuntime", **RUNTIME, timeout=0)
    assert not fake.asked


def failure(connect, **options):
    with pytest.raises(facts.LookupFailedError) as caught:
        connect(**options).live_jobset(**KEY, timeout=0.3)
    message = str(caught.value)
    assert "JobSet team/mnist" in message or "jobset team/mnist" in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (403, {"message": "User x cannot get"}, "may not get jobsets of jobset.x-k8s.io (deploy/"),
        (403, {"message": "User x cannot get"}, "User x cannot get"),
        (401, {"message": "Unauthorized"}, "the credentials are not accepted: Unauthorized"),
        (500, "boom", "the API server answered 500, Internal Server Error"),
        (503, {"message": "down"}, "the API server answered 503, down"),
        (429, {"message": "too many"}, "answered 429, too many"),
        (200, "<html>", "the answer is no JSON"),
        (200, "[]", "the answer is no JSON object"),
    ],
)
def test_a_failure_says_what_was_asked_and_what_came(fake, connect, status, body, expected):
    fake.fail("get", status, body)
    assert expected in failure(connect)


def test_an_answer_that_does_not_come_in_time_is_a_failure(fake, connect, monitor):
    fake.put()
    fake.slow.clear()
    began = time.monotonic()
    assert "did not answer in time" in failure(connect)
    assert time.monotonic() - began < 1
    assert monitor.lookups == [("jobset", "live", "failed")]


def test_an_api_server_that_is_not_there_is_a_failure(connect):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert "cannot be reached" in failure(connect, url=url)


def test_a_connection_that_was_just_closed_is_tried_again(fake, connect):
    fake.put()
    fake.fail("get", 0, lambda handler: handler.connection.shutdown(socket.SHUT_RDWR))
    assert connect().live_jobset(**KEY, timeout=2)


@pytest.mark.parametrize("timeout", [0, -3])
def test_without_time_nobody_is_asked(fake, connect, timeout):
    with pytest.raises(facts.LookupFailedError, match="no time was left"):
        connect().live_jobset(**KEY, timeout=timeout)
    assert not fake.asked


def test_a_burst_asks_the_api_server_a_few_times_only(fake, connect):
    fake.put()
    fake.slow.clear()
    cluster, answers = connect(), []
    threads = [
        threading.Thread(target=lambda: answers.append(cluster.live_jobset(**KEY, timeout=5)))
        for _ in range(30)
    ]
    for thread in threads:
        thread.start()
    until(lambda: fake.questions("get"))
    fake.slow.set()
    for thread in threads:
        thread.join()
    assert len(answers) == 30
    assert all(answers)
    assert len(fake.questions("get")) <= 3


def test_names_are_quoted(fake, connect):
    assert connect().live_jobset(namespace="a/../b", name="x?y", timeout=2) is None
    assert json.dumps(fake.asked) == '[["get", {}]]'


# --- labels of namespaces


def put_namespace(fake, **labels):
    fake.objects["team"] = {"kind": "Namespace", "metadata": {"name": "team", "labels": labels}}


def test_labels_of_a_namespace_are_read_once_in_a_while(fake, connect, monitor):
    put_namespace(fake, tier="sandbox")
    cluster = connect()
    for _ in range(3):
        assert cluster.namespace_labels(name="team", timeout=2) == {"tier": "sandbox"}
    assert fake.paths == ["/api/v1/namespaces/team"]
    assert monitor.lookups == [
        ("namespace", "live", "found"),
        ("namespace", "cache", "hit"),
        ("namespace", "cache", "hit"),
    ]


def test_a_namespace_without_labels_is_an_answer_and_none_is_another(fake, connect, monitor):
    put_namespace(fake)
    cluster = connect()
    assert cluster.namespace_labels(name="team", timeout=2) == {}
    assert cluster.namespace_labels(name="other", timeout=2) is None
    assert [outcome for *_, outcome in monitor.lookups] == ["found", "missing"]


def test_a_namespace_that_may_not_be_read_is_a_failure_that_is_not_remembered(fake, connect):
    put_namespace(fake)
    fake.fail("get", 403, {"kind": "Status", "message": "no", "code": 403})
    cluster = connect()
    with pytest.raises(facts.LookupFailedError, match="may not get namespaces"):
        cluster.namespace_labels(name="team", timeout=2)
    assert cluster.namespace_labels(name="team", timeout=2) == {}


def test_labels_are_forgotten_after_a_few_seconds():
    now = [0.0]
    memory = labels.Labels(clock=lambda: now[0])
    memory.put("a", {"x": "1"})
    now[0] = 9.9
    assert memory.get("a") == {"x": "1"}
    now[0] = 10.0
    assert memory.get("a") is None
    memory.put("b", {})
    assert (memory.get("b"), len(memory)) == ({}, 1)
