"""What the programs compute without touching anything: names, status, rhythm, sentences."""

import itertools
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_transfer import (
    credentials,
    fault,
    handover,
    layout,
    local,
    manifest,
    options,
    progress,
    rhythm,
    status,
    store,
    store_answer,
    uri,
)

paths = st.lists(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
        lambda word: word not in (".", "..")
    ),
    min_size=1,
    max_size=3,
).map("/".join)
entries = st.builds(
    manifest.Entry,
    path=paths,
    size=st.integers(0, 2**50),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    key=paths,
)
manifests = st.none() | st.builds(
    manifest.Manifest,
    run=st.text(),
    attempt=st.integers(0, 9),
    entries=st.lists(entries, max_size=3).map(lambda found: {item.path: item for item in found}),
)
statuses = st.builds(
    status.Status,
    job=st.text(min_size=1),
    run=st.text(),
    attempt=st.integers(0, 9),
    code=st.none() | st.integers(0, 255),
    time=st.text(),
    model=manifests,
    partial=manifests,
    checkpoints=manifests,
)


@given(statuses)
def test_a_status_is_read_as_it_was_written(written):
    assert status.decode(status.encode(written), where="x") == written


@given(st.binary() | st.from_type(dict).map(str).map(str.encode))
def test_what_is_no_status_is_told_with_its_address(content):
    with pytest.raises(fault.RefusedError, match=r"s3://b/status\.json"):
        status.decode(content, where="s3://b/status.json")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a//b", "", "a\0b", "."])
@pytest.mark.parametrize("field", ["path", "key"])
def test_a_status_that_leads_elsewhere_is_none(path, field):
    file = {"path": "x", "size": 1, "sha256": "0", "key": "x", field: path}
    document = {"version": 1, "job": "mnist", "model": {"files": [file]}}
    with pytest.raises(fault.RefusedError, match="leads elsewhere"):
        status.decode(json.dumps(document).encode(), where="x")


@pytest.mark.parametrize("path", ["a\\b", "..\\x", "C:/x", "C:x"])
def test_on_windows_more_ways_lead_elsewhere(path, monkeypatch):
    """And elsewhere they are names, which programs may give their files."""
    file = {"path": path, "size": 1, "sha256": "0", "key": "x"}
    document = json.dumps({"version": 1, "job": "mnist", "model": {"files": [file]}}).encode()
    assert status.decode(document, where="x").model == manifest.Manifest(
        entries={path: manifest.Entry(path=path, size=1, sha256="0", key="x")}
    )
    assert str(local.inside(path)) == path
    monkeypatch.setattr(local, "PurePath", pathlib.PureWindowsPath)
    with pytest.raises(fault.RefusedError, match="no path of a file on this machine"):
        local.inside(path)


@pytest.mark.parametrize("content", [b'{"version":1,"job":"x","code":1e999}', b"[" * 100_000])
def test_a_status_that_no_program_wrote_is_a_sentence_too(content):
    with pytest.raises(fault.RefusedError, match=r"x is no status of tfadmit"):
        status.decode(content, where="x")


def test_a_status_says_whether_there_is_a_model():
    assert json.loads(status.encode(status.Status(job="mnist")))["complete"] is False
    whole = status.Status(job="mnist", model=manifest.Manifest())
    assert json.loads(status.encode(whole))["complete"] is True


def test_the_objects_of_a_job_have_these_names():
    assert layout.STATUS == "status.json"
    assert (layout.MODEL, layout.CHECKPOINTS) == ("output/model/", "output/checkpoints/")
    assert layout.log(attempt=2, task="ps-1", path="ps-1.log") == "logs/attempt-2/ps-1.log"
    assert layout.log(attempt=2, task="ps-1", path="train/x") == "logs/attempt-2/ps-1/train/x"
    # A log of another task in a shared folder takes no other task's place.
    assert layout.log(attempt=0, task="ps-1", path="ps-2.log") == "logs/attempt-0/ps-1/ps-2.log"
    assert layout.partial(3) == "partial/attempt-3/model/"
    assert layout.parse_log("logs/attempt-12/worker-10.log") == (12, "worker-10")
    for key in ("logs/attempt-1/worker-1/x.log", "logs/attempt-x/worker-1.log", "x/worker-1.log"):
        assert layout.parse_log(key) is None


def test_saves_come_after_1_2_4_8_16_and_then_every_30_seconds():
    assert list(itertools.islice(rhythm.periods(), 8)) == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("size", "saved", "waited", "due"),
    [
        (10, None, 0, True),
        (10, 10, 999, False),
        (11, 10, 0, True),
        (5, 10, 0, True),  # begun anew
        (101_000_000, 100_000_000, 0, False),
        (113_000_000, 100_000_000, 0, True),
        (101_000_000, 100_000_000, 300, True),
    ],
)
def test_a_small_log_is_saved_whenever_it_grew_and_a_large_one_now_and_then(
    size, saved, waited, due
):
    assert rhythm.log_due(size, saved=saved, waited=waited) is due


@given(st.lists(st.integers(1, 1_000_000), min_size=1, max_size=200))
def test_all_uploads_of_a_growing_log_are_bounded(steps):
    """Nine times the log and what is small: objects cannot be appended to."""
    size, saved, sent = 0, None, 0
    for step in steps:
        size += step * 100
        if rhythm.log_due(size, saved=saved, waited=0):
            saved, sent = size, sent + size
    small = 8 * 1024 * 1024
    assert sent <= 9 * size + small * sum(1 for _ in steps if size <= small) + size


def test_credentials_have_their_usual_names_and_trainers():
    environ = {
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "ENDPOINT": "http://x",
        "AWS_REGION": "r",
        "REGION": "other",
    }
    assert credentials.s3_options(environ) == {
        "access_key_id": "a",
        "secret_access_key": "b",
        "endpoint": "http://x",
        "region": "r",
    }


@pytest.mark.parametrize(
    ("address", "environ", "missing"),
    [
        ("s3://bucket", {}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket", {"AWS_ACCESS_KEY_ID": "x"}, "AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket", {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "y"}, ""),
        ("s3://bucket", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}, ""),
        ("s3://bucket", {"AWS_SKIP_SIGNATURE": "true"}, ""),
        ("gs://bucket", {}, "GOOGLE_SERVICE_ACCOUNT_KEY"),
        ("gs://bucket", {"GOOGLE_APPLICATION_CREDENTIALS": "/x"}, ""),
        ("pvc://claim", {}, ""),
    ],
)
def test_the_credential_that_is_lacking_has_a_name(address, environ, missing):
    assert credentials.missing(uri.parse(address), environ) == missing


GOOGLE = (
    "Generic GCS error: Error performing GET https://storage.googleapis.com/b/x in 9ms - Server "
    'returned non-2xx status code: {}: {{"error": {{"message": "{}"}}}}\n\nDebug source:\nX'
)


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (
            OSError(GOOGLE.format("403 Forbidden", "it is not yours")),
            fault.RefusedError,
            "no access with GOOGLE_SERVICE_ACCOUNT_KEY (403: it is not yours)",
        ),
        (OSError(GOOGLE.format("503 Unavailable", "no")), fault.PassingError, "has a fault (503)"),
        (OSError(GOOGLE.format("429 Too Many", "no")), fault.PassingError, "has a fault (429)"),
        (
            FileNotFoundError(
                GOOGLE.format("404 Not Found", "The specified bucket does not exist.")
            ),
            fault.RefusedError,
            "the bucket gs://b-1 does not exist",
        ),
        (OSError("Generic: dns error: no"), fault.PassingError, "is not known (DNS)"),
        (OSError("x tcp connect error y"), fault.PassingError, "cannot be reached"),
        (OSError("operation timed out"), fault.PassingError, "did not answer in time"),
        (OSError("Generic: a - b"), fault.PassingError, "the connection failed (b)"),
        (
            OSError('Encountered object with invalid path: Path "a//b" contained empty segment'),
            fault.RefusedError,
            'refuses this (denied: Encountered object with invalid path: Path "a//b"',
        ),
        (
            OSError("Generic LocalFileSystem error: Filenames containing trailing '/#\\d+/' x"),
            fault.RefusedError,
            "Filenames containing trailing '/#",
        ),
        (ValueError("no such option"), fault.RefusedError, "refuses this (denied: no such option)"),
    ],
)
def test_an_answer_of_a_store_becomes_a_sentence(error, kind, sentence):
    found = store_answer.fault_of(
        error,
        name="gs://b-1/x",
        where=uri.parse("gs://b-1"),
        environ={"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"},
        mend="",
    )
    assert type(found) is kind
    assert str(found).startswith("gs://b-1/x: ")
    assert sentence in str(found)
    assert "Debug source" not in str(found)


def test_a_name_that_cannot_be_handled_is_no_lack_of_credentials():
    """With the service account of a node the environment has none."""
    for error in (ValueError("Could not parse path"), OSError("object with invalid path: x")):
        found = store_answer.fault_of(
            error, name="s3://b-1/x", where=uri.parse("s3://b-1"), environ={}, mend=""
        )
        assert "the store refuses this (denied: " in str(found)


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({}, "no access with the service account of the pod (AccessDenied: no)"),
        ({"AWS_ACCESS_KEY_ID": ""}, "no credentials: AWS_ACCESS_KEY_ID and"),
        ({"AWS_ACCESS_KEY_ID": "x"}, "no access with AWS_ACCESS_KEY_ID (AccessDenied: no)"),
    ],
)
def test_a_store_that_refuses_was_shown_a_credential_unless_it_is_set_to_nothing(environ, sentence):
    error = PermissionError(
        "Error performing GET http://store/x - Server returned non-2xx status code: 403 Forbidden: "
        "<Code>AccessDenied</Code><Message>no</Message>"
    )
    found = store_answer.fault_of(
        error, name="s3://b-1/x", where=uri.parse("s3://b-1"), environ=environ, mend=""
    )
    assert sentence in str(found)


def test_a_panic_of_obstore_ends_no_sidecar(tmp_path, monkeypatch):
    """What pyo3 makes of one is no Exception: nothing above would hold it."""

    class PanicException(BaseException):
        pass

    def put(*_):
        raise PanicException("request must be valid")

    at = store.open_store(uri.parse(f"file://{tmp_path}"), environ={})
    monkeypatch.setattr("obstore.put", put)
    with pytest.raises(fault.PassingError, match="request must be valid"):
        at.write("x", b"")


def test_a_store_that_cannot_be_reached_is_tried_again_also_with_the_pods_own_account():
    error = OSError("Error performing GET https://storage.googleapis.com/b - dns error: x")
    found = store_answer.fault_of(
        error, name="gs://b-1/x", where=uri.parse("gs://b-1"), environ={}, mend=""
    )
    assert type(found) is fault.PassingError


def test_progress_is_told_every_so_often_and_what_was_there_is_no_speed():
    now = iter([0.0, 1.0, 10.0, 10.0, 10.0, 20.0])
    said: list[str] = []
    meter = progress.Meter(what="train", total=4096, say=said.append, clock=lambda: next(now))
    meter.skip(1024)
    meter.add(512)
    meter.add(512)
    assert said == ["train: 2.0 KiB of 4.0 KiB (50 %), 102 B/s, 20 s left"]
    assert meter.end() == "train: 2.0 KiB in 20 s"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1.5 * 1024**3, "1.5 GiB")],
)
def test_bytes_are_written_for_people(number, text):
    assert progress.size(number) == text


def test_how_the_program_ended_is_read_or_nothing_is():
    assert handover.parse_ended(b'{"version":1,"attempt":2,"code":137,"signal":9}') == (
        handover.Ended(attempt=2, code=137, signal=9)
    )
    for content in (b"", b"{", b"[]", b'"x"', b"{}", b'{"code":"x"}', b"\xff", b"[" * 100_000):
        assert handover.parse_ended(content) is None
    for content in (b'{"code":1e999}', b'{"code":0,"attempt":1e999}'):
        assert handover.parse_ended(content) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"TFADMIT_ATTEMPT": "-1"}, "TFADMIT_ATTEMPT is '-1', which is no number"),
        ({"TFADMIT_SAVE_TIMEOUT": "soon"}, "TFADMIT_SAVE_TIMEOUT is 'soon', which is no number"),
        ({"TFADMIT_SAVE_TIMEOUT": "nan"}, "TFADMIT_SAVE_TIMEOUT is 'nan', which is no number"),
        ({"TFADMIT_OUTPUT_URI": "https://x/y"}, "results cannot be saved by https"),
        ({"TFADMIT_FETCH": "x"}, "'x' is no address of data"),
    ],
)
def test_an_environment_that_makes_no_sense_is_told(changes, sentence):
    with pytest.raises(fault.RefusedError) as refused:
        options.read(changes)
    assert sentence in str(refused.value)


def test_an_empty_environment_is_worker_0_that_saves_nothing():
    told = options.read({})
    assert (told.task, told.saves, told.output, told.inputs) == ("worker-0", False, None, ())
    assert options.read({"TFADMIT_SAVE_TIMEOUT": "1.5"}).save_timeout == 1.5
    assert (told.place.root, told.save_timeout) == ("/workspace", 600.0)
