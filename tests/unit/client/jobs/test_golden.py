"""Lists and single jobs as people and programs get them, for one job in each state (row 20).

`--update-golden` writes the files anew. The field names of the data are an interface: a diff that
takes one away breaks somebody's script.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

import fake_jobs as make
from tfadmit_client.cluster import listing
from tfadmit_client.commands import ps, show

GOLDEN = Path(__file__).parents[3] / "golden" / "jobs"
TRACEBACK = 'Traceback (most recent call last):\n  File "t.py"\nValueError: shapes differ\n  a\n'
NOTES = {
    "tfadmit.dev/command": '["python", "train.py", "--name", "a b"]',
    "tfadmit.dev/source": '{"commit": "0123abc", "dirty": false}',
    "tfadmit.dev/code": "5e1f",
    "tfadmit.dev/output": "s3://bucket/runs/",
    "tfadmit.dev/data": "train=s3://bucket/train",
}
TRAINER = {
    "progressPercentage": 40,
    "estimatedRemainingSeconds": 90,
    "metrics": [{"name": "loss", "value": "0.31"}],
}
JOBS = [
    make.trainjob("running", metadata={"annotations": NOTES}, status={"trainerStatus": TRAINER}),
    make.trainjob("pending"),
    make.trainjob("restarting"),
    make.trainjob("stopped", make.condition("Suspended"), spec={"suspend": True}),
    make.trainjob("done", make.condition("Complete")),
    make.trainjob("failed", make.condition("Failed", message="jobset failed")),
    make.trainjob("gone", metadata={"deletionTimestamp": make.CREATED, "finalizers": ["a.b/c"]}),
    make.trainjob("lost", spec={"runtimeRef": {"name": "never-there"}}),
    make.trainjob("roles"),
]
NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none."
PODS = [
    make.running("running", 0),
    make.running("running", 1),
    make.running("pending", 0),
    make.unscheduled("pending", 1, message=NO_GPU),
    make.running("restarting", 0, attempt=1),
    make.waiting("restarting", 1, attempt=1, reason="ContainerCreating"),
    make.ended("failed", 1, code=1, message=TRACEBACK),
    make.ended("failed", 0, code=76, at="2026-01-01T10:03:59Z"),
    make.running("roles", 0, replicated_job="chief"),
    make.running("roles", 0, replicated_job="ps"),
    make.running("roles", 1, replicated_job="ps"),
    make.running("roles", 0),
]
JOBSETS = [
    *(make.jobset(name) for name in ("running", "pending", "failed")),
    make.jobset("restarting", restarts=1),
    make.jobset(
        "roles",
        make.replicated("chief", completions=1),
        make.replicated("ps"),
        make.replicated(completions=1),
    ),
]
EVENTS = [
    make.warning("Pod", "pending-node-0-1-0", reason="FailedScheduling", message=NO_GPU),
    make.warning("JobSet", "failed", reason="FailJobSet", message="applying FailJobSet"),
]
RUNTIME = {"metadata": {"name": "tensorflow"}}


@pytest.fixture
def connect():
    cluster = make.Cluster(
        TrainJob=JOBS, JobSet=JOBSETS, Pod=PODS, Event=EVENTS, ClusterTrainingRuntime=[RUNTIME]
    )
    return lambda **_: cluster


def compare(path, text, *, update):
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_the_list_is_as_expected(form, connect, capsys, update_golden):
    code = ps.main(["-A", "-o", form], connect=connect, clock=lambda: make.NOW)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    compare(GOLDEN / f"ps.{form}", out, update=update_golden)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("name", [item["metadata"]["name"] for item in JOBS])
def test_each_job_is_shown_as_expected(name, form, connect, capsys, update_golden):
    code = show.main([name, "-o", form], connect=connect, clock=lambda: make.NOW)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    compare(GOLDEN / f"show-{name}.{form}", out, update=update_golden)


def test_the_forms_say_the_same(connect, capsys):
    ps.main(["-o", "json"], connect=connect)
    as_json = json.loads(capsys.readouterr().out)
    ps.main(["-o", "yaml"], connect=connect)
    assert yaml.safe_load(capsys.readouterr().out) == as_json
    assert [item["name"] for item in as_json] == sorted(item["metadata"]["name"] for item in JOBS)


def test_the_table_ends_where_the_terminal_does(connect, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    ps.main([], connect=connect, clock=lambda: make.NOW)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 60
    assert any(line.endswith("…") for line in lines)


def test_escape_sequences_of_a_job_do_not_reach_the_terminal(capsys):
    attack = "shapes\x1b[2J\x1b]0;title\x07 \x9b31m differ\x7f"
    trainer = {**TRAINER, "metrics": [{"name": attack, "value": attack}]}
    cluster = make.Cluster(
        TrainJob=[make.trainjob("mnist", status={"trainerStatus": trainer})],
        JobSet=[make.jobset("mnist")],
        Pod=[make.ended("mnist", 0, code=1, message=attack)],
        Event=[make.warning("JobSet", "mnist", reason="Odd", message=f"{attack}\n{attack}")],
        ClusterTrainingRuntime=[RUNTIME],
    )
    for command in (ps, show):
        for form in ("table", "json", "yaml"):
            name = ["mnist"] if command is show else []
            assert command.main([*name, "-o", form], connect=lambda **_: cluster) == 0
            out, err = capsys.readouterr()
            assert "shapes" in out
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out + err)
            if form == "json":
                data = json.loads(out)
                shown = data[0] if command is ps else data
                assert shown["metrics"] == {attack: attack}


def test_row_19_the_page_tells_how_tensorboard_is_had():
    page = Path(__file__).parents[4] / "docs" / "data-scientists.md"
    assert "`tensorboard --logdir`" in page.read_text()


def test_what_may_not_be_read_is_told_and_the_rest_is_listed(connect, capsys):
    cluster = connect()
    cluster.kinds = {**cluster.kinds, "Pod": listing.ReadError("you may not list pods")}
    running = {"name": "node", "ready": 1, "succeeded": 0}
    job = make.trainjob("counted", status={"jobsStatus": [running]})
    cluster.kinds["TrainJob"] = [job]
    code = ps.main(["-o", "json"], connect=lambda **_: cluster)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "not all is known: you may not list pods\n")
    assert json.loads(out)[0]["state"] == "Running"
