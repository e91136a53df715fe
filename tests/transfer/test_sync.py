"""The sidecar against a real S3 server: what is saved, when, and that it is never half."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
import os
import pathlib
import re
import signal
import time

import pytest

from transfer import world


@pytest.mark.every_store
def test_a_program_that_ends_well_has_model_checkpoints_and_log_saved(pod):
    """Row 21 of the feature table: results outlive the pod."""
    pod.write("output/logs/chief-0.log", b"epoch 1\n")
    pod.write("output/logs/train/events.out.tfevents.1", b"events")
    pod.write("output/checkpoints/ckpt-1.index", b"index")
    pod.write("output/model/saved_model.pb", b"graph")
    pod.write("output/model/variables/v \u00fc$`.data", b"weights")
    with pod.syncing():
        pod.end(0)
        answer = pod.saved()
    assert answer == {
        "version": 1,
        "attempt": 0,
        "ok": True,
        "message": f"saved under {pod.address}/results/mnist",
    }
    assert pod.names() == [
        "logs/attempt-0/chief-0.log",
        "logs/attempt-0/chief-0/train/events.out.tfevents.1",
        "output/checkpoints/ckpt-1.index",
        "output/model/saved_model.pb",
        "output/model/variables/v \u00fc$`.data",
        "status.json",
    ]
    assert pod.content("output/model/saved_model.pb") == b"graph"
    status = json.loads(pod.content("status.json"))
    assert status["complete"] is True
    assert (status["job"], status["run"], status["attempt"], status["code"]) == (
        "mnist", "uid-1", 0, 0,
    )  # fmt: skip


@pytest.mark.every_store
def test_what_programs_may_leave_in_their_folders_keeps_nothing_from_being_saved(pod, tmp_path):
    """Links to themselves and to nothing, pipes, names that mean something elsewhere."""
    odd = "a\\b:c*?#1"
    pod.write(f"output/model/{odd}", b"graph")
    pod.write(f"output/checkpoints/{odd}", b"state")
    for folder in ("model", "checkpoints", "logs"):
        here = pod.root / "output" / folder
        here.mkdir(exist_ok=True)
        (here / "loop").symlink_to("loop")
        (here / "nothing").symlink_to("nowhere")
        os.mkfifo(here / "pipe")
    with pod.syncing():
        pod.end(0)
        assert pod.saved()["ok"]
    assert world.assert_whole(pod, pod.status().model) == {odd: b"graph"}
    later = pod.again(tmp_path / "again")
    assert later.fetch() == 0
    assert (later.root / "output/checkpoints" / odd).read_bytes() == b"state"


def test_logs_and_checkpoints_are_saved_while_the_program_runs(pod):
    """Row 16: an out-of-memory kill of everything loses no more than a period."""
    with pod.syncing():
        pod.write("output/logs/chief-0.log", b"one\n")
        world.wait_for(lambda: "logs/attempt-0/chief-0.log" in pod.names())
        pod.write("output/checkpoints/ckpt-1.index", b"index")
        world.wait_for(lambda: "output/checkpoints/ckpt-1.index" in pod.names())
        pod.write("output/logs/chief-0.log", b"one\ntwo\n")
        world.wait_for(lambda: pod.content("logs/attempt-0/chief-0.log") == b"one\ntwo\n")
    assert pod.status().model is None


@pytest.mark.every_store
def test_sigterm_without_a_word_of_the_launcher_saves_what_is_there_as_a_part(pod):
    """The launcher was killed for lack of memory: a model that it may have begun is no model."""
    pod.write("output/logs/chief-0.log", b"killed in the midst of a l")
    pod.write("output/model/saved_model.pb", b"half a gra")
    pod.write("output/checkpoints/ckpt-7.index", b"index")
    with pod.syncing() as process:
        world.wait_for(pod.status)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert "output/model/saved_model.pb" not in pod.names()
    status = pod.status()
    assert status.model is None
    assert status.code is None
    assert world.assert_whole(pod, status.partial) == {"saved_model.pb": b"half a gra"}
    assert world.assert_whole(pod, status.checkpoints) == {"ckpt-7.index": b"index"}
    assert pod.content("logs/attempt-0/chief-0.log") == b"killed in the midst of a l"


def test_a_sigterm_while_the_sidecar_starts_is_not_lost(pod):
    """A program that ends at once: the sidecar still imports when it is asked to end."""
    pod.write("output/logs/chief-0.log", b"no such file: train.py\n")
    with pod.syncing() as process:
        status = pathlib.Path(f"/proc/{process.pid}/status")
        world.wait_for(lambda: blocked(status.read_text()) & 1 << signal.SIGTERM - 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert pod.content("logs/attempt-0/chief-0.log") == b"no such file: train.py\n"


def test_no_handler_interrupts_what_the_sidecar_does(pod):
    """One that sets an event would wait for ever where it interrupts a wait for that event."""
    with pod.syncing() as process:
        world.wait_for(pod.status)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    caught = re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
    assert caught
    assert not int(caught[1], 16) & 1 << signal.SIGTERM - 1
    assert blocked(status) & 1 << signal.SIGTERM - 1


def blocked(status):
    """The signals that a process holds back or catches."""
    masks = re.findall(r"^Sig(?:Blk|Cgt):\s*(\w+)", status, re.MULTILINE)
    return functools.reduce(operator.or_, (int(mask, 16) for mask in masks))


def test_a_failed_attempt_never_touches_the_complete_model(pod, tmp_path):
    pod.write("output/model/saved_model.pb", b"good")
    with pod.syncing():
        pod.end(0)
        pod.saved()
    later = pod.again(tmp_path / "later")
    later.write("output/model/saved_model.pb", b"bad")
    with later.syncing():
        later.end(1)
        assert later.saved()["ok"]
    status = later.status()
    assert status.code == 1
    assert world.assert_whole(later, status.model) == {"saved_model.pb": b"good"}
    assert later.content("output/model/saved_model.pb") == b"good"
    assert world.assert_whole(later, status.partial) == {"saved_model.pb": b"bad"}


@pytest.mark.every_store
def test_a_better_model_takes_the_place_of_an_older_one_and_nothing_is_left_over(pod, tmp_path):
    pod.write("output/model/saved_model.pb", b"one")
    pod.write("output/model/gone.txt", b"gone later")
    with pod.syncing():
        pod.end(0)
        pod.saved()
    later = pod.again(tmp_path / "later")
    later.write("output/model/saved_model.pb", b"two")
    with later.syncing():
        later.end(0)
        later.saved()
    assert later.names() == ["output/model/saved_model.pb", "status.json"]
    assert later.content("output/model/saved_model.pb") == b"two"


def test_only_the_task_that_saves_writes_model_and_checkpoints(pod, tmp_path):
    worker = dataclasses.replace(pod, role="worker", index=3, saves=False)
    worker.write("output/model/scratch", b"a scratch model")
    worker.write("output/checkpoints/scratch", b"a scratch checkpoint")
    worker.write("output/logs/worker-3.log", b"log")
    with worker.syncing():
        worker.end(0)
        assert worker.saved()["ok"]
    assert worker.names() == ["logs/attempt-0/worker-3.log"]


@pytest.mark.every_store
def test_a_restarted_gang_goes_on_from_its_checkpoint(pod, tmp_path):
    """Rows 23 and 24: an eviction, then another pod with an empty workspace."""
    pod.write("output/checkpoints/checkpoint", b"latest: ckpt-3")
    pod.write("output/checkpoints/ckpt-3.data", b"weights of epoch 3")
    with pod.syncing() as process:
        world.wait_for(lambda: pod.status() and pod.status().checkpoints)
        process.send_signal(signal.SIGKILL)
    later = pod.again(tmp_path / "later")
    assert later.fetch() == 0
    restored = later.root / "output/checkpoints"
    assert (restored / "checkpoint").read_bytes() == b"latest: ckpt-3"
    assert (restored / "ckpt-3.data").read_bytes() == b"weights of epoch 3"
    assert sorted(path.name for path in restored.iterdir()) == ["checkpoint", "ckpt-3.data"]


def test_another_job_of_the_same_name_does_not_go_on_from_foreign_checkpoints(
    pod, tmp_path, capsys
):
    pod.write("output/checkpoints/ckpt-3.data", b"weights")
    with pod.syncing():
        pod.end(0)
        pod.saved()
    other = pod.again(tmp_path / "other", run="uid-2")
    assert other.fetch() == 0
    assert list((other.root / "output/checkpoints").iterdir()) == []
    assert "checkpoints of another job of this name" in capsys.readouterr().err


def test_checkpoints_that_the_program_deletes_are_deleted_after_newer_ones_are_named(pod):
    pod.write("output/checkpoints/ckpt-1", b"1")
    with pod.syncing():
        world.wait_for(lambda: "output/checkpoints/ckpt-1" in pod.names())
        pod.write("output/checkpoints/ckpt-2", b"2")
        (pod.root / "output/checkpoints/ckpt-1").unlink()
        world.wait_for(lambda: "output/checkpoints/ckpt-1" not in pod.names())
        assert world.assert_whole(pod, pod.status().checkpoints) == {"ckpt-2": b"2"}


def test_an_empty_folder_deletes_no_checkpoints(pod, tmp_path):
    pod.write("output/checkpoints/ckpt-1", b"1")
    with pod.syncing():
        pod.end(1)
        pod.saved()
    later = pod.again(tmp_path / "later")
    with later.syncing():
        later.end(1)
        assert later.saved()["ok"]
    assert world.assert_whole(later, later.status().checkpoints) == {"ckpt-1": b"1"}


def test_an_earlier_attempt_that_comes_back_late_stops_writing(pod, tmp_path):
    later = pod.again(tmp_path / "later")
    later.write("output/model/saved_model.pb", b"of attempt 1")
    with later.syncing():
        later.end(0)
        later.saved()
    pod.write("output/model/saved_model.pb", b"of attempt 0")
    with pod.syncing():
        pod.end(0)
        answer = pod.saved()
    assert not answer["ok"]
    assert "attempt 1 writes here now" in answer["message"]
    assert pod.content("output/model/saved_model.pb") == b"of attempt 1"


@pytest.mark.every_store
def test_a_bucket_that_is_away_is_told_to_the_launcher(pod):
    """Row 22: a model that is not stored is no success; the launcher makes it exit code 74."""
    pod.write("output/model/saved_model.pb", b"graph")
    (pod.server.folder / pod.bucket).rename(pod.server.folder / f"{pod.bucket}-away")
    with pod.syncing():
        pod.end(0)
        answer = pod.saved()
    assert answer["ok"] is False
    assert f"the bucket {pod.address} does not exist" in answer["message"]


@pytest.mark.every_store
def test_a_store_that_comes_back_in_time_has_everything(pod, line):
    pod = dataclasses.replace(pod, port=line.port)
    pod.write("output/model/saved_model.pb", b"graph")
    line.down = True
    with pod.syncing():
        pod.end(0)
        world.wait_for(lambda: line.resets >= 3)
        line.down = False
        assert pod.saved()["ok"]
    assert world.assert_whole(pod, pod.status().model) == {"saved_model.pb": b"graph"}


def test_a_store_that_stays_away_is_given_up_in_time(pod, line):
    pod = dataclasses.replace(pod, port=line.port, save_timeout=12)
    pod.write("output/model/saved_model.pb", b"graph")
    line.down = True
    with pod.syncing():
        pod.end(0)
        answer = pod.saved(within=100)
    assert not answer["ok"]
    assert answer["message"].startswith(f"s3://{pod.bucket}/results/mnist/")


@pytest.mark.parametrize("after", [0.05, 0.15, 0.3, 0.6, 1.0])
def test_a_kill_in_the_midst_leaves_the_old_model_or_the_new_one(pod, tmp_path, after):
    """kill -9 while a model takes the place of another; the next sidecar ends what was begun."""

    def model(letter):
        return {f"part-{number}": letter * (3_000_000 + number) for number in range(6)}

    for path, content in model(b"a").items():
        pod.write(f"output/model/{path}", content)
    with pod.syncing():
        pod.end(0)
        pod.saved()
    later = pod.again(tmp_path / "later")
    for path, content in model(b"b").items():
        later.write(f"output/model/{path}", content)
    later.end(0)
    with later.syncing() as process:
        begun = later.root / ".tfadmit/.started"
        assert begun.exists()
        world.wait_for(lambda: any(key.startswith(".staging/") for key in later.names()))
        time.sleep(after)
        process.kill()
        process.wait()
    assert world.assert_whole(later, later.status().model) in (model(b"a"), model(b"b"))
    with later.syncing():
        assert later.saved()["ok"]
        world.wait_for(lambda: not any(key.startswith(".staging/") for key in later.names()))
    assert world.assert_whole(later, later.status().model) == model(b"b")
    assert later.content("output/model/part-0") == model(b"b")["part-0"]
