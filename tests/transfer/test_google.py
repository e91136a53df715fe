"""What is Google's own: who may ask, how often an object may change, and gzip on the way.

The tests marked `every_store` elsewhere show that transfers are the same there as with S3.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import threading

import obstore
import pytest
from obstore.store import S3Store

from harness import google_accounts
from tfadmit_transfer import cli
from transfer import world


@pytest.fixture
def scheme():
    return "gs"


def fetched(pod, environ):
    """Let the init container run as a process, with nothing but this to open the store."""
    whole = {name: value for name, value in pod.environ.items() if not name.startswith("GOOGLE_")}
    process = world.start("fetch", {"HOME": str(pod.root), **whole, **environ})
    _, said = process.communicate(timeout=110)
    return process.returncode, said


def reading(pod):
    address = pod.put("in/train/one.csv", b"1,2")
    return dataclasses.replace(pod, data=address)


def test_workload_identity_opens_the_store(pod, google):
    """The pod has no key at all: the metadata server of its node gives it a token."""
    pod = reading(pod)
    asked = {"GCE_METADATA_HOST": google.host, "GOOGLE_BASE_URL": f"http://{google.host}"}
    code, said = fetched(pod, asked)
    assert code == 0, said
    assert (pod.root / "dataset/data/one.csv").read_bytes() == b"1,2"


@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"])
def test_the_key_may_be_in_a_file(pod, google, tmp_path, name):
    pod = reading(pod)
    (tmp_path / "key.json").write_text(google.trainer.key)
    asked = {name: str(tmp_path / "key.json"), "GOOGLE_BASE_URL": f"http://{google.host}"}
    code, said = fetched(pod, asked)
    assert code == 0, said


def test_the_key_itself_may_name_the_server(pod, google):
    pod = reading(pod)
    key = json.loads(google.trainer.key) | {"gcs_base_url": f"http://{google.host}"}
    code, said = fetched(pod, {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key) + "\n"})
    assert code == 0, said


def test_a_public_bucket_needs_no_credentials(pod, google):
    pod = dataclasses.replace(reading(pod), data=f"{pod.address}/in")
    google.public.add(pod.bucket)
    asked = {"GOOGLE_SKIP_SIGNATURE": "true", "GOOGLE_BASE_URL": f"http://{google.host}"}
    code, said = fetched(pod, {**asked, "TFADMIT_OUTPUT_URI": ""})
    assert code == 0, said
    assert (pod.root / "dataset/data/train/one.csv").read_bytes() == b"1,2"


def test_who_may_not_ask_is_told_so(pod, capsys):
    for account, sentence in (
        (google_accounts.account("gone", known=False), "(AuthenticationRequired: "),
        (google_accounts.account("stranger"), "(AccessDenied: Access denied.)"),
    ):
        environ = {**reading(pod).environ, "GOOGLE_SERVICE_ACCOUNT_KEY": account.key}
        assert cli.main(["fetch"], environ=environ) == 2
        said = capsys.readouterr().err
        assert f"no access with GOOGLE_SERVICE_ACCOUNT_KEY {sentence}" in said


def test_a_pod_whose_own_account_may_not_ask_has_credentials_all_the_same(pod, google):
    """The metadata server gave it a token: it lacks a right, and not a Secret."""
    google.metadata_token, given = "", google.metadata_token
    try:
        asked = {"GCE_METADATA_HOST": google.host, "GCE_METADATA_IP": google.host}
        code, said = fetched(pod, {**asked, "GOOGLE_BASE_URL": f"http://{google.host}"})
        assert code == 2
        assert "no credentials: GOOGLE_SERVICE_ACCOUNT_KEY not set" in said
    finally:
        google.metadata_token = given
    google.strangers.add(given)
    try:
        code, said = fetched(pod, {**asked, "GOOGLE_BASE_URL": f"http://{google.host}"})
        assert code == 2
        assert "no access with the service account of the pod (AccessDenied: " in said
    finally:
        google.strangers.remove(given)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"TFADMIT_FETCH": "gs://not-there/x"}, "the bucket gs://not-there does not exist"),
        ({"TFADMIT_OUTPUT_URI": "gs://not-there/x"}, "the bucket gs://not-there does not exist"),
        ({"TFADMIT_FETCH": "{address}/nothing"}, "{address}/nothing: there is nothing"),
        ({"TFADMIT_FETCH": "{address}", "TFADMIT_OUTPUT_URI": ""}, "the bucket is empty"),
    ],
)
def test_what_is_not_there_is_told(pod, capsys, changes, sentence):
    stated = {name: value.format(address=pod.address) for name, value in changes.items()}
    assert cli.main(["fetch"], environ={**pod.environ, **stated}) == 2
    assert sentence.format(address=pod.address) in capsys.readouterr().err


def test_an_object_that_may_change_once_a_second_changes_in_its_time(pod, google, tmp_path):
    """The status is written several times as a save ends; nobody is told of the waiting."""
    before = len(google.refused)
    pod.write("output/checkpoints/ckpt-1", b"1")
    pod.write("output/model/saved_model.pb", b"graph")
    assert pod.fetch() == 0
    pod.end(0)
    process = world.start("sync", pod.environ)
    try:
        assert pod.saved()["ok"]
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert "SlowDown" in google.refused[before:]
    assert "trying again" not in said
    assert json.loads(pod.content("status.json"))["complete"] is True


def test_many_small_files_go_many_at_a_time_each_step_of_the_way(pod, google):
    """Each request waits until seven others are there: one after the other none would end."""
    for number in range(16):
        pod.write(f"output/model/part-{number}", b"graph")
    google.meetings |= {step: threading.Barrier(8) for step in ("upload", "copy", "delete")}
    try:
        with pod.syncing():
            pod.end(0)
            assert pod.saved(within=100)["ok"]
    finally:
        google.meetings.clear()
    assert len(world.assert_whole(pod, pod.status().model)) == 16


def stored_with_gzip(pod, key, content):
    """What `gcloud storage cp --gzip-in-flight-all` and `gsutil cp -Z` leave."""
    told = pod.server.environ()
    at = S3Store(
        pod.bucket,
        access_key_id=told["AWS_ACCESS_KEY_ID"],
        secret_access_key=told["AWS_SECRET_ACCESS_KEY"],
        endpoint=told["AWS_ENDPOINT_URL"],
        region="us-east-1",
        client_options={"allow_http": True},
    )
    obstore.put(at, key, content, attributes={"Content-Encoding": "gzip"}, use_multipart=False)
    return f"{pod.address}/{key}"


def test_what_is_stored_with_gzip_arrives_as_it_is_stored(pod):
    content = gzip.compress(b"1,2\n" * 1000)
    pod = dataclasses.replace(pod, data=stored_with_gzip(pod, "in/one.csv", content))
    assert pod.fetch() == 0
    assert (pod.root / "dataset/data/one.csv").read_bytes() == content


def test_what_google_sends_without_a_length_is_refused_with_the_way_out(pod, capsys):
    content = gzip.compress(bytes(9 * 1024 * 1024), compresslevel=0)
    pod = dataclasses.replace(pod, data=stored_with_gzip(pod, "in/one.csv", content))
    assert pod.fetch() == 2
    said = capsys.readouterr().err
    assert "/in/one.csv: it is stored with Content-Encoding: gzip" in said
    assert "gcloud storage objects update" in said
