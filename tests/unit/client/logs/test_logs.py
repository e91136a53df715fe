"""Logs over connections that break: nothing lost, nothing doubled (rows 15, 16)."""

import io
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_jobs as make
from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.commands import logs
from tfadmit_client.logs import choose, follow, once, position, printing, source, stream
from tfadmit_client.logs.line import Line
from tfadmit_client.watch import belong

BROKEN = listing.UnreachableError("the connection failed")
RUN = source.Run(
    namespace="team", pod="mnist-node-0-0-0", uid="mnist-node-0-0-0", container="node", number=0,
    replica="worker-0", attempt=0,
)  # fmt: skip


def stamped(number, *, second=0, text=None):
    return f"2026-01-01T10:00:{second:02}.{number:09}Z {text or f'line {number}'}\n".encode()


def content(*pods, trainjob=None):
    job = trainjob or make.trainjob("mnist")
    parts = belong.Parts(jobsets=[make.jobset("mnist")], pods=pods)
    return belong.Index(parts).seen(job)


# --- position -----------------------------------------------------------------------------------

RAW = st.builds(
    stamped,
    st.integers(0, 3),
    second=st.integers(0, 5),
    text=st.sampled_from(["a", "b", "ü", "", "x\ty"]),
)


@given(log=st.lists(RAW, max_size=30), breaks=st.lists(st.integers(0, 30), max_size=5))
def test_any_breaks_lose_and_double_nothing(log, breaks):
    log = sorted(log, key=lambda raw: raw[:20])  # within a second in any order, as two streams are
    told = position.Position()
    lines = []
    for end in [*breaks, len(log)]:
        told.reconnected()
        since = told.since.encode().rstrip(b"Z")
        answer = [raw for index, raw in enumerate(log) if index < end and raw[:19] >= since]
        lines += [taken for raw in answer if (taken := told.take(raw))]
    if not breaks or max(breaks) <= len(log):
        expected = [raw.partition(b" ")[2].rstrip(b"\n").decode() for raw in log]
        assert sorted(text for _, text in lines) == sorted(expected)


def test_a_line_that_the_runtime_has_split_is_kept():
    told = position.Position()
    assert told.take(stamped(1)) == ("2026-01-01T10:00:00.000000001Z", "line 1")
    assert told.take(b"rest of it\n") == ("2026-01-01T10:00:00.000000001Z", "rest of it")


def test_bytes_that_are_no_text_are_shown_as_such():
    taken = position.Position().take(stamped(1)[:-1] + b"\xff\n")
    assert taken == ("2026-01-01T10:00:00.000000001Z", "line 1\ufffd")


# --- one container ------------------------------------------------------------------------------


def read(cluster, **options):
    found = stream.lines(cluster, RUN, stream.Options(sleep=lambda _: None, **options))
    return [line.text for line in found]


def test_a_stream_that_breaks_is_taken_up_again():
    cluster = make.Cluster(Pod=[make.running("mnist")])
    cluster.logs[RUN.pod] = [
        [stamped(1), stamped(2), stamped(3)[:-3], BROKEN],
        BROKEN,
        listing.StatusError(502, "the node does not answer"),
        [stamped(1), stamped(2), stamped(3)],
        listing.StatusError(404, "gone"),
    ]
    ends = itertools.count()

    def sleep(_):
        if next(ends) == 3:
            cluster.kinds["Pod"] = []

    found = stream.lines(cluster, RUN, stream.Options(follow=True, sleep=sleep))
    assert [line.text for line in found] == ["line 1", "line 2", "line 3"]
    assert [query.get("sinceTime") for _, query in cluster.asked] == [
        None, *["2026-01-01T09:59:58Z"] * 3,
    ]  # fmt: skip


def test_a_container_that_has_ended_is_read_once_more_to_its_end():
    cluster = make.Cluster(Pod=[make.running("mnist")])
    cluster.logs[RUN.pod] = [[stamped(1)], [stamped(1), stamped(2), b"2026-01-01T10:00:01Z no end"]]

    def sleep(_):
        cluster.kinds["Pod"] = [make.ended("mnist", code=0)]

    found = stream.lines(cluster, RUN, stream.Options(follow=True, sleep=sleep))
    assert [line.text for line in found] == ["line 1", "line 2", "no end"]
    assert "follow" not in cluster.asked[-1][1]


def test_a_container_that_was_started_again_is_read_as_the_previous_one():
    cluster = make.Cluster(Pod=[make.running("mnist", restarts=1)])
    cluster.logs[RUN.pod] = [[stamped(1)]]
    assert read(cluster, follow=True) == ["line 1"]
    assert cluster.asked[0][1]["previous"] == "true"


GONE = b"unable to retrieve container logs for containerd://eab4a5f4"


def test_what_a_node_says_of_a_log_that_it_has_no_more_is_no_line():
    cluster = make.Cluster(Pod=[make.ended("mnist", code=0)])
    cluster.logs[RUN.pod] = [[GONE]]
    with pytest.raises(stream.GoneError, match="the node has it no more: unable to retrieve"):
        read(cluster, follow=True)


def test_what_a_node_says_of_a_log_that_was_read_to_its_end_is_not_told():
    cluster = make.Cluster(Pod=[make.running("mnist")])
    cluster.logs[RUN.pod] = [[stamped(1), stamped(2)], [GONE]]

    def sleep(_):
        cluster.kinds["Pod"] = [make.ended("mnist", code=0)]

    found = stream.lines(cluster, RUN, stream.Options(follow=True, sleep=sleep))
    assert [line.text for line in found] == ["line 1", "line 2"]


def test_a_line_of_the_program_may_say_what_nodes_say():
    cluster = make.Cluster(Pod=[make.ended("mnist", code=0)])
    cluster.logs[RUN.pod] = [[stamped(1, text=GONE.decode())]]
    assert read(cluster, follow=True) == [GONE.decode()]


def test_a_log_that_cannot_be_watched_is_read_again_and_again():
    """The kubelet of a node that has no inotify watch left gives the lines so far."""
    cluster = make.Cluster(Pod=[make.running("mnist")])
    full = b"failed to create fsnotify watcher: too many open files"
    cluster.logs[RUN.pod] = [[stamped(1), full], [stamped(1), stamped(2), full], [stamped(2)]]
    ends = itertools.count()

    def sleep(_):
        if next(ends) == 1:
            cluster.kinds["Pod"] = [make.ended("mnist", code=0)]

    found = stream.lines(cluster, RUN, stream.Options(follow=True, sleep=sleep))
    assert [line.text for line in found] == ["line 1", "line 2"]


def test_another_pod_of_the_same_name_is_not_read():
    other = make.running("mnist")
    other["metadata"]["uid"] = "another"
    cluster = make.Cluster(Pod=[other])
    assert read(cluster, follow=True) == []
    assert cluster.asked == []


def test_what_is_not_followed_gives_up_after_three_tries():
    cluster = make.Cluster(Pod=[make.running("mnist")])
    cluster.logs[RUN.pod] = [BROKEN]
    with pytest.raises(listing.UnreachableError):
        read(cluster)
    assert len(cluster.asked) == 3


# --- which --------------------------------------------------------------------------------------


def names(choice):
    pods = [make.running("mnist", 0), make.running("mnist", 1), make.ended("mnist", 0, code=1)]
    pods[2]["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] = "1"
    return [(run.replica, run.attempt) for run in choose.runs(content(*pods), choice)]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (choose.Choice(), [("worker-0", 0), ("worker-0", 1), ("worker-1", 0)]),
        (choose.Choice(replicas=["worker-1"]), [("worker-1", 0)]),
        (choose.Choice(replicas=["worker"], attempt=1), [("worker-0", 1)]),
        (choose.Choice(replicas=["ps"]), []),
        (choose.Choice(container="other"), []),
    ],
)
def test_runs_are_those_that_are_asked_for(choice, expected):
    assert names(choice) == expected


def test_sidecars_are_left_out_and_our_own_init_containers_are_not():
    pod = make.running("mnist")
    pod["spec"]["containers"].append({"name": "istio-proxy"})
    pod["spec"]["initContainers"] = [
        {"name": "tfadmit-fetch"}, {"name": "other"},
        {"name": "tfadmit-save", "restartPolicy": "Always"},
    ]  # fmt: skip
    state: make.Json = {"running": {}}
    pod["status"]["containerStatuses"].append({"name": "istio-proxy", "state": state})
    pod["status"]["initContainerStatuses"] = [
        {"name": name, "state": state} for name in ("tfadmit-fetch", "other", "tfadmit-save")
    ]
    found = [run.container for run in choose.runs(content(pod), choose.Choice())]
    assert found == ["tfadmit-fetch", "node"]


# --- a whole job --------------------------------------------------------------------------------


def test_a_log_that_cannot_be_read_does_not_keep_the_others():
    cluster = make.Cluster(Pod=[make.running("mnist", 0), make.running("mnist", 1)])
    cluster.logs[RUN.pod] = [listing.StatusError(500, "no route to host")]
    cluster.logs["mnist-node-0-1-0"] = [[stamped(1)]]
    told: list[str] = []
    found = once.lines(
        cluster,
        content(*cluster.objects(kinds.POD, namespace="team")),
        choose.Choice(),
        failed=told.append,
    )
    assert [(line.replica, line.text) for line in found] == [("worker-1", "line 1")]
    assert told == [
        "the log of worker-0 cannot be read: the API server answered 500: no route to host"
    ]


def followed(cluster, **options):
    follower = follow.Follower(
        cluster, namespace="team", name="mnist", options=follow.Options(**{"poll": 0.01, **options})
    )
    return follower, list(follower.lines())


def test_a_log_that_its_node_has_no_more_is_told_and_does_not_end_the_following():
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist", make.condition("Complete"))],
        JobSet=[make.jobset("mnist")],
        Pod=[make.ended("mnist", 0, code=0), make.ended("mnist", 1, code=0)],
    )
    cluster.logs["mnist-node-0-0-0"] = [[GONE]]
    cluster.logs["mnist-node-0-1-0"] = [[stamped(1)]]
    told: list[str] = []
    _, lines = followed(cluster, tell=told.append)
    assert [line.text for line in lines] == ["line 1"]
    assert told[-1] == (
        "the end of the log of worker-0 is missing: the node has it no more: "
        "unable to retrieve container logs for containerd://eab4a5f4"
    )


def test_a_job_that_has_ended_is_followed_to_its_end():
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist", make.condition("Complete"))],
        JobSet=[make.jobset("mnist")],
        Pod=[make.ended("mnist", 0, code=0), make.ended("mnist", 1, code=0)],
    )
    for number in range(2):
        cluster.logs[f"mnist-node-0-{number}-0"] = [[stamped(at) for at in range(1000)]]
    follower, lines = followed(cluster)
    for number in range(2):
        texts = [line.text for line in lines if line.replica == f"worker-{number}"]
        assert texts == [f"line {at}" for at in range(1000)]
    assert follower.final
    assert follower.final.state.word == "Succeeded"


def test_a_job_that_is_deleted_ends_the_following():
    cluster = make.Cluster(TrainJob=[make.trainjob("mnist")])
    told: list[str] = []

    def tell(text):
        told.append(text)
        cluster.kinds["TrainJob"] = []

    follower, lines = followed(cluster, tell=tell)
    assert (lines, follower.final) == ([], None)
    assert told[-1] == "mnist was deleted"


def test_a_cluster_that_is_away_for_minutes_ends_the_following():
    cluster = make.Cluster(TrainJob=[make.trainjob("mnist")])
    seconds = itertools.count(step=100)

    def tell(_):
        cluster.kinds["TrainJob"] = BROKEN

    with pytest.raises(listing.UnreachableError):
        followed(cluster, tell=tell, clock=lambda: float(next(seconds)))


def test_a_watch_lets_the_job_be_looked_at_at_once():
    job = make.trainjob("mnist")
    cluster = make.Cluster(TrainJob=[job], JobSet=[make.jobset("mnist")])

    def change():
        cluster.kinds["TrainJob"] = [make.trainjob("mnist", make.condition("Complete"))]
        yield b'{"type": "ADDED"}\n'

    cluster.changes = lambda *_, **__: make.Stream(change())  # type: ignore[method-assign]
    # without the word of a change it would look again in an hour, and the test would time out
    _, lines = followed(cluster, poll=3600)
    assert lines == []


def test_a_reason_from_events_stays_while_events_are_not_read():
    quota = 'pods "x" is forbidden: exceeded quota: team, requested: pods=1'
    event = make.warning("Job", "mnist-node-0", reason="FailedCreate", message=quota)
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist")],
        JobSet=[make.jobset("mnist")],
        Job=[make.job("mnist")],
        Event=[event],
    )
    told: list[str] = []
    looks = itertools.count()

    def clock():
        if next(looks) > 60:
            cluster.kinds["TrainJob"] = []
        return float(next(looks))

    followed(cluster, tell=told.append, clock=clock)
    assert told == ["mnist: Pending: quota team is used up: requested: pods=1", "mnist was deleted"]


def test_a_job_that_may_not_be_read_is_a_sentence():
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist")],
        JobSet=[make.jobset("mnist")],
        Pod=[make.running("mnist")],
    )
    cluster.logs[RUN.pod] = [fault.ClientError("you may not read logs")]
    with pytest.raises(fault.ClientError, match="you may not read logs"):
        followed(cluster)


# --- how it looks -------------------------------------------------------------------------------


def test_the_task_stands_in_front_in_one_width():
    printer = printing.Printer(width=8)
    lines = [
        Line(replica="ps-0", attempt=0, text="a"),
        Line(replica="worker-0", attempt=0, text=""),
    ]
    assert [printer.text(line) for line in lines] == ["ps-0     | a", "worker-0 |"]


def test_a_terminal_gets_colours_and_what_stays_of_a_line_that_overwrites_itself():
    printer = printing.Printer(coloured=True)
    line = Line(replica="worker-0", attempt=0, text="1/9\r2/9")
    assert printer.text(line) == "\x1b[36mworker-0 |\x1b[0m 2/9"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("terminal", "no_colour", "coloured"), [
    (True, False, True), (True, True, False), (False, False, False),
])  # fmt: skip
def test_only_a_terminal_is_coloured(terminal, no_colour, coloured, monkeypatch):
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist")],
        JobSet=[make.jobset("mnist")],
        Pod=[make.running("mnist")],
    )
    cluster.logs[RUN.pod] = [[stamped(1)]]
    out = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    assert logs.main(["mnist"], connect=lambda **_: cluster) == 0
    assert ("\x1b[" in out.getvalue()) is coloured
    assert "line 1" in out.getvalue()


# --- saved logs ---------------------------------------------------------------------------------


def saved(base, job, *, attempt, replicas):
    yield Line(replica="worker-0", attempt=attempt or 0, text=f"{base} {job} {list(replicas)}")


def run(cluster, *argv, reader=saved):
    return logs.main(argv, connect=lambda **_: cluster, saved=lambda: reader)


def test_row_16_after_deletion_the_saved_logs_are_read(capsys):
    runtime = {"metadata": {"name": "t", "annotations": {"tfadmit.dev/default-output": "s3://b/r"}}}
    cluster = make.Cluster(TrainJob=[], ClusterTrainingRuntime=[runtime])
    assert run(cluster, "mnist", "worker-0") == 0
    out, err = capsys.readouterr()
    assert out == "worker-0 | s3://b/r mnist ['worker-0']\n"
    assert err == "the pods are gone; this was saved in s3://b/r/mnist/\n"
    assert run(cluster, "mnist", "--saved", "s3://mine", "--attempt", "2", "-o", "json") == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["attempt"], line["text"]) == (2, "s3://mine mnist []")


def test_row_16_a_job_without_pods_shows_what_was_saved_where_it_says(capsys):
    notes = {"annotations": {"tfadmit.dev/output": "s3://own/"}}
    done = make.trainjob("mnist", make.condition("Complete"), metadata=notes)
    assert run(make.Cluster(TrainJob=[done]), "mnist") == 0
    assert capsys.readouterr().out == "worker-0 | s3://own/ mnist []\n"


def refusing(base, job, *, attempt, replicas):
    if base:
        raise fault.ClientError(f"{base}/{job}/logs has no log of any task")
    yield


def test_a_name_that_is_nearly_right_is_told_before_what_was_not_saved(capsys):
    cluster = make.Cluster(TrainJob=[make.trainjob("mnist", make.condition("Complete"))])
    said = "did you mean mnist.; s3://b/mnits/logs has no log of any task"
    with pytest.raises(fault.ClientError, match=said):
        run(cluster, "mnits", "--saved", "s3://b", reader=refusing)
    assert run(cluster, "mnist", "--saved", "s3://b", reader=refusing) == 2
    assert capsys.readouterr().err == (
        "there are no logs: mnist is Succeeded\ns3://b/mnist/logs has no log of any task\n"
    )


def test_without_a_place_or_a_reader_it_says_what_there_is(capsys):
    cluster = make.Cluster(TrainJob=[make.trainjob("mnist", make.condition("Complete"))])
    assert run(cluster, "mnist") == 0
    assert capsys.readouterr().err == "there are no logs: mnist is Succeeded\n"
    with pytest.raises(fault.ClientError, match="there is no TrainJob other in namespace team"):
        run(cluster, "other", "--saved", "s3://b", reader=None)


def test_a_pending_job_says_why_there_is_nothing(capsys):
    said = "0/1 nodes are available: 1 Insufficient cpu."
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist")], JobSet=[make.jobset("mnist")],
        Pod=[make.unscheduled("mnist", number, message=said) for number in range(2)],
    )  # fmt: skip
    assert run(cluster, "mnist") == 0
    assert capsys.readouterr().err == (
        "there are no logs: mnist is Pending: 0/1 nodes: 1 Insufficient cpu; -f waits for them\n"
    )
