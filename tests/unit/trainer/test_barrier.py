"""Waiting for peers: who, how long, what is said meanwhile, and what when they do not come."""

import socket
import threading
import time

import pytest

from tfadmit_trainer import barrier, diagnosis
from tfadmit_trainer.diagnosis import Missing
from tfadmit_trainer.peers import Peer
from tfadmit_trainer.waiting import Tools
from unit.trainer.outside import FOUND, UNANSWERED, UNKNOWN, Outside, task_context

DOMAIN = "mnist.team.svc.cluster.local"
EIGHT = (f"mnist-node-0-{{0..7}}.{DOMAIN}:12345",)


def name(index):
    return f"mnist-node-0-{index}.{DOMAIN}"


def names(*indexes):
    return [name(index) for index in indexes]


@pytest.fixture
def outside():
    return Outside()


# --- who waits for whom --------------------------------------------------------------------------


def test_it_ends_at_once_when_all_are_there_and_says_so(outside):
    barrier.wait(task_context(worker=EIGHT), tools=outside.tools(names(*range(8))))
    assert outside.said == ["all 8 tasks found, 0.0 s"]
    assert sorted(outside.asked) == sorted(names(*range(8)))


def test_the_own_name_is_waited_for_too(outside):
    context = task_context(index=0, worker=EIGHT)
    with pytest.raises(barrier.PeersMissingError) as caught:
        barrier.wait(context, timeout=30, tools=outside.tools(names(*range(1, 8))))
    assert "but not this task's own, mnist-node-0-0" in str(caught.value)


def test_a_task_without_a_cluster_waits_for_nobody(outside):
    barrier.wait(task_context(source="single", worker=("localhost:1",)), tools=outside.tools())
    assert (outside.asked, outside.said) == ([], [])


def test_the_evaluator_waits_for_nobody_and_nobody_waits_for_it(outside):
    cluster = {"worker": ("w.job:1",), "evaluator": ("e.job:1",)}
    barrier.wait(task_context("evaluator", 0, **cluster), tools=outside.tools())
    assert outside.asked == []
    barrier.wait(task_context("worker", 0, **cluster), tools=outside.tools(["w.job"]))
    assert outside.asked == ["w.job"]


def test_tasks_on_one_host_share_one_question(outside):
    context = task_context(worker=("localhost:1", "localhost:2"), ps=("localhost:3",))
    barrier.wait(context, tools=outside.tools(["localhost"]))
    assert outside.asked == ["localhost"]


# --- what is said meanwhile ----------------------------------------------------------------------


def test_a_late_peer_is_waited_for_and_named_meanwhile(outside):
    begin = outside.clock.now
    late = {name(3): 16.0, name(7): 40.0}

    def answer(host):
        return FOUND if outside.clock.now - begin >= late.get(host, 0) else UNKNOWN

    barrier.wait(task_context(worker=EIGHT), tools=outside.tools(answer))
    assert outside.said[0] == "waiting for worker 3, 7 (2 of 8), 5 s"
    assert outside.said[1] == "waiting for worker 3, 7 (2 of 8), 15 s"
    assert outside.said[2] == "waiting for worker 7 (1 of 8), 35 s"
    assert outside.said[-1].startswith("all 8 tasks found, 4")


def test_the_lines_come_at_longer_and_longer_intervals(outside):
    with pytest.raises(barrier.PeersMissingError):
        barrier.wait(task_context(worker=EIGHT), timeout=300, tools=outside.tools(names(0)))
    seconds = [int(line.split(", ")[-1].split()[0]) for line in outside.said]
    assert len(seconds) == 7
    for second, due in zip(seconds, [5, 15, 35, 75, 135, 195, 255], strict=True):
        assert due <= second <= due + 1


def test_a_missing_name_is_asked_for_about_every_ten_seconds(outside):
    with pytest.raises(barrier.PeersMissingError):
        barrier.wait(task_context(worker=EIGHT), timeout=300, tools=outside.tools(names(*range(7))))
    assert outside.asked.count(name(0)) == 1
    assert 25 <= outside.asked.count(name(7)) <= 45


# --- when they do not come -----------------------------------------------------------------------


def failure(outside, answer, **cluster):
    context = task_context(index=0, **(cluster or {"worker": EIGHT}))
    with pytest.raises(barrier.PeersMissingError) as caught:
        barrier.wait(context, timeout=60, tools=outside.tools(answer))
    return caught.value


def test_the_error_has_the_missing_peers_and_a_retryable_code(outside):
    error = failure(outside, names(*range(7)))
    assert [str(item.peer) for item in error.missing] == ["worker 7"]
    assert error.exit_code == 75
    assert str(error).startswith("worker 7 (1 of 8) not found in 60 s by worker 0: ")


@pytest.mark.parametrize(
    ("answer", "cluster", "says"),
    [
        (
            [],
            {},
            [
                "not even this task's own",
                "spec.template.spec.network.publishNotReadyAddresses: true",
                "subdomain) 'mnist'",
                "kubectl -n team get service mnist -o jsonpath=",
            ],
        ),
        (
            names(0, 1, 2),
            {},
            ["the other 3 names exist", "Pending", "kubectl -n team get pods -o wide | grep -e"],
        ),
        (
            names(*range(7)),
            {},
            ["probably Pending", "grep -e mnist-node-0-7-", "kubectl describe pod"],
        ),
        (
            names(*range(1, 8)),
            {},
            ["another hostname or subdomain", ".spec.subdomain", "endpointslices"],
        ),
        (
            lambda _: UNANSWERED,
            {},
            ["do not answer", "kube-dns", f"getent hosts {name(0)}"],
        ),
        (
            lambda host: FOUND if host == name(0) else UNANSWERED,
            {},
            ["do not answer"],
        ),
        ([], {"worker": ("w-{0..1}.job:1",)}, ["kubectl get service job -o"]),
        ([], {"worker": ("a.example.com:1", "b.example.com:1")}, ["getent hosts a.example.com"]),
        (["a"], {"worker": ("a:1", "b:1")}, ["no names of a Kubernetes service", "hosts b"]),
    ],
)
def test_the_likely_cause_is_told_by_evidence_with_the_command_to_look(
    outside, answer, cluster, says
):
    message = str(failure(outside, answer, **cluster))
    for words in says:
        assert words in message


def test_a_real_name_that_cannot_exist_ends_at_the_deadline():
    said: list[str] = []
    context = task_context(worker=("localhost:1", "nobody.invalid:1"))
    tools = Tools(say=said.append)
    begin = time.monotonic()
    with pytest.raises(barrier.PeersMissingError, match=r"worker 1 \(1 of 2\) not found"):
        barrier.wait(context, timeout=0.5, tools=tools)
    assert time.monotonic() - begin < 10


def test_name_servers_that_hang_do_not_hold_up_the_deadline():
    release = threading.Event()

    def hang(_host):
        release.wait(30)
        return UNKNOWN

    tools = Tools(lookup=hang, say=lambda _: None)
    begin = time.monotonic()
    with pytest.raises(barrier.PeersMissingError, match="do not answer"):
        barrier.wait(task_context(worker=EIGHT), timeout=0.3, tools=tools)
    assert time.monotonic() - begin < 10
    release.set()


def test_names_that_were_not_asked_for_yet_are_not_called_missing(outside):
    context = task_context(worker=("w-{0..999}.job:1",))
    with pytest.raises(barrier.PeersMissingError) as caught:
        barrier.wait(context, timeout=20, tools=outside.tools(lambda _: FOUND))
    assert outside.said[0].endswith("names not asked for yet, to spare the name servers, 5 s")
    assert "waiting for" not in outside.log
    assert "there was no time to ask for" in str(caught.value)
    assert "--barrier-timeout" in str(caught.value)


# --- connections ---------------------------------------------------------------------------------


def test_waiting_for_tensorflows_own_port_is_warned_of(outside):
    barrier.wait(task_context(worker=EIGHT), connect=True, tools=outside.tools(names(*range(8))))
    assert "wait for ever" in outside.warned[0]


@pytest.mark.parametrize(
    ("role", "port"), [("chief", None), ("worker", 2222)], ids=["chief-with-ps", "another-port"]
)
def test_the_two_right_uses_are_not_warned_of(outside, role, port):
    context = task_context(role, 0, chief=("c.j:1",), worker=("w.j:1",), ps=("p.j:1",))
    tools = outside.tools(["c.j", "w.j", "p.j"])
    barrier.wait(context, connect=True, port=port, tools=tools)
    assert outside.warned == []


def test_the_own_port_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        context = task_context("chief", 0, chief=("localhost:1",), ps=(f"localhost:{port}",))
        said: list[str] = []
        tools = Tools(say=said.append)
        barrier.wait(context, timeout=10, connect=True, tools=tools)
    assert said[-1].startswith("all 2 tasks found")


def test_a_peer_that_resolves_but_does_not_listen_is_told_apart(outside):
    tools = outside.tools(names(*range(8)), connects=lambda *_, **__: False)
    with pytest.raises(barrier.PeersMissingError) as caught:
        barrier.wait(task_context(worker=EIGHT), timeout=30, connect=True, port=9, tools=tools)
    assert {item.why for item in caught.value.missing} == {"refused"}
    assert "nothing accepts connections" in str(caught.value)


# --- the look of a watchdog ----------------------------------------------------------------------


def test_one_look_names_who_is_not_there_and_asks_each_once(outside):
    tools = outside.tools(names(*range(7)), connects=lambda *_, **__: True)
    absent = barrier.missing(task_context(worker=EIGHT), tools=tools)
    assert [(str(item.peer), item.why) for item in absent] == [("worker 7", "unknown")]
    assert len(outside.asked) == 8
    assert outside.said == []


def test_one_look_is_bounded_and_does_not_blame_whom_it_had_no_time_to_ask():
    tools = Tools(lookup=lambda _: FOUND)
    begin = time.monotonic()
    context = task_context(worker=("w-{0..9999}.job:1",))
    assert barrier.missing(context, connect=False, timeout=0.2, tools=tools) == []
    assert time.monotonic() - begin < 10


def test_one_look_names_those_whose_name_servers_hang():
    release = threading.Event()
    tools = Tools(lookup=lambda _: FOUND if release.wait(30) else UNKNOWN)
    absent = barrier.missing(task_context(worker=EIGHT), timeout=0.3, tools=tools)
    assert {item.why for item in absent} == {"unanswered"}
    release.set()


def test_a_long_list_is_searched_for_by_what_its_pods_have_in_common():
    missing = [
        Missing(peer=Peer(role="worker", index=i, address=f"{name(i)}:1"), why="unknown")
        for i in range(5)
    ]
    own = Peer(role="worker", index=9, address=f"{name(9)}:1")
    text = diagnosis.explain(missing, own=own, total=10)
    assert "kubectl -n team get pods -o wide | grep -e mnist-node-0-\n" in text
