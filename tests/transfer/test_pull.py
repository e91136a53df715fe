"""`tfadmit pull` and saved logs, from a real S3 server and by the command."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from tfadmit_client import api, cli, fault
from tfadmit_client.cluster import listing
from tfadmit_client.commands import pull
from tfadmit_client.pull import saved, saved_place
from transfer import world


@pytest.fixture
def done(pod):
    """A job that has ended well."""
    pod.write("output/model/saved_model.pb", b"graph")
    pod.write("output/model/variables/variables.data", b"w" * 100_000)
    pod.write("output/checkpoints/ckpt-1.index", b"index")
    pod.write("output/logs/chief-0.log", b"epoch 1\nepoch 2\n")
    with pod.syncing():
        pod.end(0)
        assert pod.saved()["ok"]
    return pod


@pytest.fixture
def call(pod, monkeypatch, tmp_path):
    """Call the command as a user with credentials does."""
    for name, value in pod.server.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def called(*words):
        return cli.main(["pull", "mnist", "--from", pod.base, *words])

    return called


def files(root):
    found = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


MODEL = {"saved_model.pb": b"graph", "variables/variables.data": b"w" * 100_000}


def test_pull_brings_model_checkpoints_and_logs(done, call, tmp_path, capsys):
    """Row 21."""
    assert call() == 0
    here = tmp_path / "mnist"
    assert files(here / "model") == MODEL
    assert files(here / "checkpoints") == {"ckpt-1.index": b"index"}
    assert files(here / "logs") == {"attempt-0/chief-0.log": b"epoch 1\nepoch 2\n"}
    assert sorted(path.name for path in here.iterdir()) == [
        ".tfadmit-pull.json",
        "checkpoints",
        "logs",
        "model",
    ]
    assert capsys.readouterr().out.splitlines() == [
        "logs: 1 file, 1 of them new or longer, in mnist/logs",
        "checkpoints: 1 file, 5 B, in mnist/checkpoints",
        "model: 2 files, 97.7 KiB, in mnist/model",
    ]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_how_far_it_is(pod, line, call, monkeypatch, capsys, is_terminal):
    pod.write("output/model/weights", b"w" * 4 * 1024 * 1024)
    with pod.syncing():
        pod.end(0)
        assert pod.saved()["ok"]
    line.bytes_per_second = 1_500_000
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{line.port}")
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    assert call() == 0
    said = capsys.readouterr().err
    drawn = re.findall(r"\r\x1b\[Kmodel: [\d.]+ MiB of 4\.0 MiB \(\d+ %\), [^\r\n]+/s", said)
    assert bool(drawn) is is_terminal
    assert ("\r" in said) is is_terminal


def test_the_function_brings_the_same(done, monkeypatch, tmp_path):
    for name, value in done.server.environ().items():
        monkeypatch.setenv(name, value)
    lines = api.pull("mnist", tmp_path / "here", base=done.base)
    assert lines[-1] == f"model: 2 files, 97.7 KiB, in {tmp_path}/here/model"
    assert files(tmp_path / "here/model") == MODEL


def test_a_folder_that_cannot_be_written_is_told(done, call, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert call("file/below") == 2
    assert "cannot write: " in capsys.readouterr().err


def test_a_second_pull_brings_nothing_twice(done, call, capsys):
    assert call() == 0
    capsys.readouterr()
    assert call() == 0
    assert capsys.readouterr().out.splitlines() == [
        "logs: 1 file, 0 of them new or longer, in mnist/logs",
        "checkpoints: 1 file, 5 B, was there already",
        "model: 2 files, 97.7 KiB, was there already",
    ]


def test_a_log_of_another_job_that_is_as_long_is_brought_again(done, call, tmp_path):
    """A job that is started again under its name often writes as many bytes."""
    assert call() == 0
    key = "results/mnist/logs/attempt-0/chief-0.log"
    done.put(key, b"epoch 3\nepoch 4\n")
    log = done.server.folder / done.bucket / key
    later = log.stat().st_mtime + 60
    os.utime(log, (later, later))
    assert call() == 0
    assert files(tmp_path / "mnist/logs") == {"attempt-0/chief-0.log": b"epoch 3\nepoch 4\n"}


def test_a_damaged_file_on_this_machine_is_brought_again(done, call, tmp_path):
    assert call() == 0
    (tmp_path / "mnist/model/saved_model.pb").write_bytes(b"other")
    assert call() == 0
    assert files(tmp_path / "mnist/model") == MODEL


def test_half_a_model_is_refused_unless_it_is_asked_for(pod, call, tmp_path, capsys):
    pod.write("output/model/saved_model.pb", b"half a gra")
    with pod.syncing():
        pod.end(3)
        assert pod.saved()["ok"]
    assert call() == 1
    assert (
        "model: not brought, there is no whole one: attempt 0 ended with code 3; "
        "1 file of a model (10 B) can be had with --partial"
    ) in capsys.readouterr().out
    assert not (tmp_path / "mnist/model").exists()
    assert call("--partial") == 0
    assert "NOT a whole model" in capsys.readouterr().out
    assert files(tmp_path / "mnist/partial-model") == {"saved_model.pb": b"half a gra"}
    assert not (tmp_path / "mnist/model").exists()


def test_the_model_of_an_earlier_attempt_is_brought_and_said_to_be_one(
    done, call, tmp_path, capsys
):
    later = done.again(tmp_path / "later")
    with later.syncing():
        later.end(1)
        later.saved()
    assert call() == 1
    said = capsys.readouterr().out
    assert "it is of attempt 0, since then attempt 1 ended with code 1" in said
    assert files(tmp_path / "mnist/model") == MODEL


def test_an_interrupted_pull_leaves_no_model_and_goes_on(done, call, line, tmp_path):
    line.bytes_per_second = 60_000
    command = [sys.executable, "-m", "tfadmit_client", "pull", "mnist", "--from", done.base]
    environ = {**os.environ, **done.server.environ(port=line.port)}
    process = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE)
    part = tmp_path / "mnist/.model.pulling/variables/.variables.data.part"
    world.wait_for(part.exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"the same command goes on" in said
    assert b"Traceback" not in said
    assert not (tmp_path / "mnist/model").exists()
    assert call() == 0
    assert files(tmp_path / "mnist/model") == MODEL


def test_a_folder_with_other_things_of_that_name_is_left_alone(done, call, tmp_path, capsys):
    (tmp_path / "mine/model").mkdir(parents=True)
    (tmp_path / "mine/model/precious").write_text("mine")
    assert call("mine") == 2
    assert "mine/model is there and was not brought by `tfadmit pull`" in capsys.readouterr().err
    assert files(tmp_path / "mine") == {"model/precious": b"mine"}


def test_a_folder_with_results_of_another_job_is_left_alone(done, call, tmp_path, capsys):
    assert call("here") == 0
    assert cli.main(["pull", "other", "here", "--from", done.base]) == 2
    assert "nothing is saved there" in capsys.readouterr().err
    done.put("results/other/logs/attempt-0/chief-0.log", b"x")
    assert cli.main(["pull", "other", "here", "--from", done.base]) == 2
    assert "has the results of" in capsys.readouterr().err


MISTAKES = {
    "no bucket": ({}, "s3://not-there/x", 2, "the bucket s3://not-there does not exist"),
    "a wrong secret": (
        {"AWS_SECRET_ACCESS_KEY": "wrong"},
        None,
        2,
        "no access with AWS_ACCESS_KEY_ID (SignatureDoesNotMatch",
    ),
    "no key": (
        {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        None,
        2,
        "not set, and no service account gives any: set it in your environment",
    ),
    "no address": ({}, "bucket/x", 2, "'bucket/x' is no address of data"),
    "a claim": ({}, "pvc://results/x", 2, "a claim can be read in the cluster only"),
    "plain HTTP": ({}, "http://x/y", 2, "results cannot be saved by http"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_a_sentence(done, call, monkeypatch, capsys, mistake):
    changes, base, code, sentence = mistake
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    words = ["pull", "mnist", "--from", base or done.base]
    assert cli.main(words) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


class Cluster:
    """Objects in place of an API server; a kind that is an error cannot be read."""

    default_namespace = "team"
    flags = ""

    def __init__(self, **objects):
        self._objects = objects

    def get(self, kind, *, namespace, name):
        found = self._objects.get(kind.name)
        if isinstance(found, Exception):
            raise found
        return found

    def objects(self, kind, *, namespace, **selectors):
        found = self._objects.get(kind.name)
        return iter([found] if found and not selectors else [])

    def version_of(self, group):
        return ""


def trainjob(**annotations):
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "mnist", "namespace": "team", "uid": "u", "annotations": annotations},
        "spec": {"runtimeRef": {"name": "tensorflow-distributed"}},
    }


def secret(environ):
    data = {name: base64.b64encode(value.encode()).decode() for name, value in environ.items()}
    return {"kind": "Secret", "metadata": {"name": "keys"}, "data": data}


def pulled(cluster, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return pull.main(["mnist"], connect=lambda **_: cluster, environ={})


def test_place_and_credentials_are_those_of_the_job(done, monkeypatch, tmp_path, capsys):
    """Row 30: whoever made the job. A laptop needs a kubeconfig and nothing else."""
    job = trainjob(**{"tfadmit.dev/output": done.base, "tfadmit.dev/store-secret": "keys"})
    cluster = Cluster(TrainJob=job, Secret=secret(done.server.environ()))
    assert pulled(cluster, monkeypatch, tmp_path) == 0
    assert files(tmp_path / "mnist/model") == MODEL


@pytest.mark.parametrize(
    "other", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SKIP_SIGNATURE"]
)
def test_credentials_for_another_store_do_not_keep_the_jobs_from_being_used(
    done, monkeypatch, tmp_path, other
):
    job = trainjob(**{"tfadmit.dev/output": done.base, "tfadmit.dev/store-secret": "keys"})
    cluster = Cluster(TrainJob=job, Secret=secret(done.server.environ()))
    monkeypatch.chdir(tmp_path)
    assert pull.main(["mnist"], connect=lambda **_: cluster, environ={other: "mine"}) == 0
    assert files(tmp_path / "mnist/model") == MODEL


@pytest.mark.parametrize(
    ("base", "own"),
    [
        ("s3://results/x", "AWS_ACCESS_KEY_ID"),
        ("s3://results/x", "ACCESS_KEY_ID"),
        ("s3://results/x", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("gs://results/x", "GOOGLE_SERVICE_ACCOUNT"),
        ("gs://results/x", "GOOGLE_SKIP_SIGNATURE"),
        ("gs://results/x", "GOOGLE_APPLICATION_CREDENTIALS"),
    ],
)
def test_the_users_own_credentials_come_before_the_jobs(base, own):
    """Whoever has some need not be allowed to read Secrets."""
    refusing = Cluster(Secret=AssertionError("the Secret was asked for"))
    environ = {own: "mine"}
    place = saved_place.readable(
        refusing, namespace="team", secret="keys", base=base, environ=environ
    )
    assert place.environ == environ


def test_a_secret_that_may_not_be_read_is_told_with_what_it_leads_to(done, monkeypatch, tmp_path):
    job = trainjob(**{"tfadmit.dev/output": done.base, "tfadmit.dev/store-secret": "keys"})
    refusal = listing.ReadError("you may not get secrets in namespace team (403)")
    endpoint = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{done.server.port}"}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fault.ClientError, match=r"no credentials.*you may not get secrets"):
        pull.main(
            ["mnist"],
            connect=lambda **_: Cluster(TrainJob=job, Secret=refusal),
            environ=endpoint,
        )


def test_a_job_that_saves_nothing_is_told_apart(monkeypatch, tmp_path):
    with pytest.raises(fault.ClientError, match=r"mnist saves nothing: .*tfadmit\.dev/output"):
        pulled(Cluster(TrainJob=trainjob()), monkeypatch, tmp_path)


def test_results_of_a_deleted_job_are_found_where_the_runtimes_save(done, monkeypatch, tmp_path):
    runtime = {
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r", "annotations": {"tfadmit.dev/default-output": done.base}},
    }
    monkeypatch.chdir(tmp_path)
    cluster = Cluster(ClusterTrainingRuntime=runtime)
    environ = done.server.environ()
    assert pull.main(["mnist"], connect=lambda **_: cluster, environ=environ) == 0
    assert files(tmp_path / "mnist/model") == MODEL


def test_saved_logs_are_read_attempt_by_attempt_and_task_by_task(pod, tmp_path):
    """Row 16: after the pods and the job are gone."""
    for number in (10, 2):
        worker = dataclasses.replace(
            pod, role="worker", index=number, saves=False, root=tmp_path / f"worker-{number}"
        )
        worker.write(f"output/logs/worker-{number}.log", b"one\r\ntwo \xff\nno end")
        with worker.syncing():
            worker.end(0)
            worker.saved()
    later = pod.again(tmp_path / "later")
    later.write("output/logs/chief-0.log", b"again\n")
    with later.syncing():
        later.end(0)
        later.saved()

    def lines(attempt=None, replicas=()):
        found = saved.logs(
            pod.base, "mnist", attempt=attempt, replicas=replicas, environ=pod.server.environ()
        )
        return [(line.attempt, line.replica, line.text) for line in found]

    three = ["one", "two \ufffd", "no end"]
    assert lines() == [
        *((0, "worker-2", text) for text in three),
        *((0, "worker-10", text) for text in three),
        (1, "chief-0", "again"),
    ]
    assert lines(attempt=1) == [(1, "chief-0", "again")]
    assert lines(replicas=["worker-10"]) == [(0, "worker-10", text) for text in three]
    assert {replica for _, replica, _ in lines(replicas=["worker"])} == {"worker-2", "worker-10"}
    with pytest.raises(fault.ClientError, match="has no log of ps in attempt 1"):
        lines(attempt=1, replicas=["ps"])


def test_a_status_of_a_later_version_is_refused_with_what_helps(done, call, capsys):
    status = json.loads(done.content("status.json"))
    done.put("results/mnist/status.json", json.dumps({**status, "version": 2}).encode())
    assert call() == 2
    assert "has version 2, this tfadmit reads version 1" in capsys.readouterr().err


def test_a_status_that_leads_out_of_the_folder_is_refused(done, call, tmp_path, capsys):
    status = json.loads(done.content("status.json"))
    status["model"]["files"][0]["path"] = "../../escaped"
    done.put("results/mnist/status.json", json.dumps(status).encode())
    assert call() == 2
    assert "leads elsewhere" in capsys.readouterr().err
    assert not (tmp_path / "escaped").exists()
