"""The init container against a real S3 server: what it brings, and what it says when it cannot."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random

import pytest

from tfadmit_transfer import cli
from transfer import world

ODD = "a b/\u00fc-\u65e5\u672c/$HOME`x`%41+&=#?.txt"


def fetched(pod):
    return json.loads((pod.root / ".tfadmit/fetched.json").read_bytes())


def dataset(pod, name="data"):
    root = pod.root / "dataset" / name
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def reading(pod, data, **changes):
    return dataclasses.replace(pod, data=data, **changes)


@pytest.mark.every_store
def test_a_folder_of_a_bucket_arrives_as_it_is(pod, capsys):
    """Row 7: named inputs; names of files may have what S3 allows and file systems too."""
    pod.put("in/train/one.csv", b"1,2")
    pod.put(f"in/train/{ODD}", b"odd")
    pod.put("in/training-of-others/x", b"not this one")
    pod.put("in/test.csv", b"3,4")
    pod = reading(pod, f"train={pod.address}/in/train\ntest={pod.address}/in/test.csv")
    assert pod.fetch() == 0
    assert dataset(pod, "train") == {"one.csv": b"1,2", ODD: b"odd"}
    assert dataset(pod, "test") == {"test.csv": b"3,4"}
    assert fetched(pod) == {
        "version": 1,
        "inputs": [
            {"name": "train", "uri": f"{pod.address}/in/train", "bytes": 6},
            {
                "name": "test",
                "uri": f"{pod.address}/in/test.csv",
                "bytes": 3,
                "sha256": hashlib.sha256(b"3,4").hexdigest(),
            },
        ],
    }
    said = capsys.readouterr().err
    assert f"fetching train: 2 files, 6 B, from {pod.address}/in/train/" in said
    assert "fetched test: 3 B in 0 s" in said


def test_a_number_sign_in_a_name_is_written_with_an_escape(pod):
    """And no other escape means anything in a store."""
    pod.put("in/a#1.csv", b"1")
    pod.put("in/a%2Fb.csv", b"2")
    address = f"s3://{pod.bucket}/in"
    pod = reading(pod, f"one={address}/a%231.csv,two={address}/a%2Fb.csv")
    assert pod.fetch() == 0
    assert dataset(pod, "one") == {"a#1.csv": b"1"}
    assert dataset(pod, "two") == {"a%2Fb.csv": b"2"}


@pytest.mark.every_store
def test_the_markers_of_folders_are_no_files(pod):
    """The consoles of stores make them, of no bytes and with a slash at the end."""
    for key in ("in/", "in/train/", "in/train/deep/"):
        pod.server.mark_folder(pod.bucket, key)
    pod.put("in/train/deep/one.csv", b"1,2")
    pod.put("in/train/empty.csv", b"")
    pod = reading(pod, f"train={pod.address}/in/train,all={pod.address}")
    assert pod.fetch() == 0
    assert dataset(pod, "train") == {"deep/one.csv": b"1,2", "empty.csv": b""}
    assert dataset(pod, "all") == {"in/train/deep/one.csv": b"1,2", "in/train/empty.csv": b""}


def test_a_model_to_start_from_lies_beside_the_datasets(pod):
    pod.put("models/resnet/weights.h5", b"weights")
    pod = reading(pod, f"model=s3://{pod.bucket}/models/resnet/")
    assert pod.fetch() == 0
    assert (pod.root / "model/weights.h5").read_bytes() == b"weights"


def test_files_can_be_changed_by_a_program_of_another_user(pod):
    pod.put("in/x", b"x")
    pod = reading(pod, f"s3://{pod.bucket}/in")
    before = os.umask(0o077)
    try:
        assert pod.fetch() == 0
    finally:
        os.umask(before)
    assert (pod.root / "output/checkpoints").stat().st_mode & 0o777 == 0o777
    assert (pod.root / "dataset/data/x").stat().st_mode & 0o666 == 0o666


@pytest.mark.every_store
def test_200_mib_go_up_in_parts_and_come_down_equal(pod):
    noise = random.Random(1).randbytes(1024 * 1024)
    digest = hashlib.sha256()
    model = pod.root / "output/model/weights"
    model.parent.mkdir(parents=True)
    with model.open("wb") as file:
        for number in range(200):
            block = number.to_bytes(4, "big") + noise
            file.write(block)
            digest.update(block)
    with pod.syncing():
        pod.end(0)
        assert pod.saved(within=110)["ok"]
    (entry,) = pod.status().model.entries.values()
    assert entry.size == 200 * (1024 * 1024 + 4)
    assert entry.sha256 == digest.hexdigest()
    pod = reading(pod, f"{pod.address}/results/mnist/output/model#sha256={entry.sha256}")
    pod = dataclasses.replace(pod, data=pod.data.replace("output/model#", "output/model/weights#"))
    model.unlink()
    assert pod.fetch() == 0
    got = fetched(pod)["inputs"][0]
    assert (got["bytes"], got["sha256"]) == (entry.size, entry.sha256)


@pytest.mark.every_store
def test_a_connection_that_breaks_again_and_again_goes_on_where_it_was(pod, line):
    content = random.Random(2).randbytes(20_000_000)
    address = pod.put("in/big", content)
    pod = reading(pod, address, port=line.port)
    line.breaks_after += [200_000, 6_000_000, 200_000, 9_000_000]
    assert pod.fetch() == 0
    assert dataset(pod) == {"big": content}
    assert line.resets == 4


def test_a_slow_line_is_slow_and_no_fault(pod, line, capsys):
    content = random.Random(3).randbytes(3_000_000)
    address = pod.put("in/big", content)
    line.bytes_per_second = 2_000_000
    pod = reading(pod, address, port=line.port)
    assert pod.fetch() == 0
    assert dataset(pod) == {"big": content}
    assert "trying again" not in capsys.readouterr().err


@pytest.mark.every_store
def test_a_fetch_that_was_killed_goes_on_where_it_was(pod, line):
    content = random.Random(4).randbytes(24_000_000)
    address = pod.put("in/big", content)
    line.bytes_per_second = 8_000_000
    slow = reading(pod, address, port=line.port)
    part = pod.root / "dataset/data/.big.part"
    process = world.start("fetch", slow.environ)
    world.wait_for(lambda: part.exists() and part.stat().st_size > 4_000_000)
    process.kill()
    process.communicate()
    assert not (pod.root / ".tfadmit/fetched.json").exists()
    assert dataset(pod).keys() == {".big.part", ".big.version"}
    line.bytes_per_second = None
    there = part.stat().st_size
    # What is left comes through, the whole would not.
    line.breaks_after += [len(content) - there + 200_000]
    assert slow.fetch() == 0
    assert line.resets == 0
    assert dataset(pod) == {"big": content}


@pytest.mark.every_store
def test_an_object_that_was_replaced_meanwhile_is_never_half_of_each(pod, line):
    old, new = b"a" * 12_000_000, b"b" * 9_000_000
    address = pod.put("in/big", old)
    part = pod.root / "dataset/data/.big.part"
    line.bytes_per_second = 8_000_000
    slow = reading(pod, address, port=line.port)
    process = world.start("fetch", slow.environ)
    world.wait_for(lambda: part.exists() and part.stat().st_size > 1_000_000)
    process.kill()
    process.communicate()
    pod.put("in/big", new)
    assert reading(pod, address).fetch() == 0
    assert dataset(pod) == {"big": new}


REFUSALS = {
    "a wrong secret": (
        {"AWS_SECRET_ACCESS_KEY": "wrong"},
        "no access with AWS_ACCESS_KEY_ID (SignatureDoesNotMatch:",
    ),
    "an unknown key": (
        {"AWS_ACCESS_KEY_ID": "AKNOBODY"},
        "no access with AWS_ACCESS_KEY_ID (InvalidAccessKeyId:",
    ),
    "no key": (
        {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        "no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY not set",
    ),
    "half a key": (
        {"AWS_SECRET_ACCESS_KEY": ""},
        "no credentials: AWS_SECRET_ACCESS_KEY not set",
    ),
    "no bucket for data": (
        {"TFADMIT_FETCH": "s3://not-there/x"},
        "s3://not-there/x: the bucket s3://not-there does not exist",
    ),
    "no bucket for results": (
        {"TFADMIT_OUTPUT_URI": "s3://not-there/x"},
        "the bucket s3://not-there does not exist",
    ),
    "nothing at the key": (
        {"TFADMIT_FETCH": "s3://{bucket}/nothing"},
        "s3://{bucket}/nothing: there is nothing",
    ),
    "an empty bucket": (
        {"TFADMIT_FETCH": "s3://{bucket}", "TFADMIT_OUTPUT_URI": ""},
        "s3://{bucket}: the bucket is empty",
    ),
    "another checksum": (
        {"TFADMIT_FETCH": "s3://{bucket}/in/x#sha256=" + "0" * 64},
        "in/x: its sha256 is 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    ),
    "a checksum for a folder": (
        {"TFADMIT_FETCH": "s3://{bucket}/in#sha256=" + "0" * 64},
        "#sha256= is for one file, and there are 2: leave it out",
    ),
    "a name that is too long": (
        {"TFADMIT_FETCH": "http://127.0.0.1:1/" + "x" * 256},
        "and a part of it longer than 255 bytes",
    ),
    "an endpoint without a scheme": (
        {"AWS_ENDPOINT_URL": "", "ENDPOINT": "minio:9000"},
        "AWS_ENDPOINT_URL is 'minio:9000', which is no address of a server",
    ),
    "a key in the path of a key": (
        {"TFADMIT_FETCH": "gs://bucket/x", "GOOGLE_APPLICATION_CREDENTIALS": '{"hush": "hush"}'},
        "GOOGLE_APPLICATION_CREDENTIALS is the path of a file, and has its content",
    ),
    "a password in an address of another scheme": (
        {"TFADMIT_FETCH": "ftp://me:hush@example.org/x"},
        "'ftp://…@example.org/x' has the scheme ftp",
    ),
    "a bundle of certificates that is not here": (
        {"AWS_CA_BUNDLE": "/not/there.pem"},
        "AWS_CA_BUNDLE names /not/there.pem, which cannot be read (No such file or directory)",
    ),
    "a secret in the address": (
        {"TFADMIT_FETCH": "https://me:hush@example.org/x"},
        "https://…@example.org carries a user or password",
    ),
    "another scheme": (
        {"TFADMIT_FETCH": "gcs://bucket/x"},
        "'gcs://bucket/x' has the scheme gcs: write gs://",
    ),
}


@pytest.mark.parametrize(("changes", "sentence"), REFUSALS.values(), ids=REFUSALS)
def test_a_mistake_is_a_sentence_with_the_address_and_exit_code_2(pod, capsys, changes, sentence):
    if changes.get("TFADMIT_OUTPUT_URI") != "":
        pod.put("in/x", b"x")
        pod.put("in/y", b"y")
    pod = reading(pod, f"s3://{pod.bucket}/in/x")
    stated = {name: value.replace("{bucket}", pod.bucket) for name, value in changes.items()}
    assert cli.main(["fetch"], environ={**pod.environ, **stated}) == 2
    said = capsys.readouterr().err
    assert sentence.replace("{bucket}", pod.bucket) in said
    assert "Traceback" not in said
    assert "hush" not in said
    assert pod.server.secret_key not in said
    assert not (pod.root / ".tfadmit/fetched.json").exists()


def test_a_line_break_at_the_end_of_a_key_is_none(pod):
    """`echo` and files leave one in a Secret."""
    pod = reading(pod, pod.put("in/x", b"x"))
    keys = {name: f"{value}\n" for name, value in pod.environ.items() if name.startswith("AWS_")}
    assert cli.main(["fetch"], environ={**pod.environ, **keys}) == 0
    assert dataset(pod) == {"x": b"x"}


@pytest.mark.parametrize("key", ["in/x", "in/x/y"])
def test_a_name_that_is_a_file_and_a_folder_is_not_tried_again(pod, capsys, key):
    """A store can have both, below one address; here the other one is there already."""
    pod.put(key, b"x")
    there = pod.root / "dataset/data/x"
    there.parent.mkdir(parents=True)
    there.mkdir() if key == "in/x" else there.write_bytes(b"")
    assert reading(pod, f"s3://{pod.bucket}/in").fetch() == 2
    assert "in a store one name can be a file and a folder" in capsys.readouterr().err


def test_the_last_words_may_name_what_is_no_text(pod, tmp_path):
    log = tmp_path / "termination-log"
    whole = reading(pod, f"s3://{pod.bucket}/\udcff").environ
    environ = {**whole, "TFADMIT_TERMINATION_LOG": str(log)}
    assert cli.main(["fetch"], environ=environ) == 2
    assert log.read_bytes().startswith(f"fetch: s3://{pod.bucket}/?".encode())


@pytest.mark.every_store
def test_a_store_that_cannot_be_reached_is_a_fault_that_may_pass(pod, line, capsys):
    line.down = True
    pod = reading(pod, f"{pod.address}/in", port=line.port)
    assert pod.fetch(world.hasty(limit=0.0)) == 75
    assert f"{pod.address}/results/mnist/" in capsys.readouterr().err


def test_results_can_be_saved_to_a_volume(pod, tmp_path):
    """Without any object store: a claim that the webhook has mounted."""
    volume = tmp_path / "volume"
    volume.mkdir()
    environ = {
        **pod.environ,
        "TFADMIT_OUTPUT_URI": "pvc://results/team-a/mnist",
        "TFADMIT_OUTPUT_MOUNT": str(volume / "mnist"),
    }
    assert cli.main(["fetch"], environ=environ) == 0
    pod.write("output/model/saved_model.pb", b"graph")
    process = world.start("sync", environ)
    pod.end(0)
    assert pod.saved()["ok"]
    process.terminate()
    process.communicate(timeout=30)
    assert (volume / "mnist/output/model/saved_model.pb").read_bytes() == b"graph"
    assert json.loads((volume / "mnist/status.json").read_bytes())["complete"] is True


def test_the_reason_stands_where_kubernetes_shows_it(pod, tmp_path):
    log = tmp_path / "termination-log"
    environ = {**reading(pod, "s3://nowhere-at-all/x").environ, "TFADMIT_TERMINATION_LOG": str(log)}
    assert cli.main(["fetch"], environ=environ) == 2
    assert log.read_text().startswith("fetch: s3://nowhere-at-all/x")
