"""`tfadmit demo` against the real server, and its way out of every trouble."""

import json
import os
import subprocess
import sys
import tempfile

import pytest
import yaml

from tfadmit_client import cli, fault
from tfadmit_client.commands import demo
from tfadmit_client.demo import examples, review, server
from tfadmit_client.demo import text as demo_text
from tfadmit_client.expand import expansion

needs_repository = pytest.mark.skipif(
    not examples.DEPLOY.is_dir(), reason="no repository around the package"
)


@pytest.fixture(autouse=True)
def processes(monkeypatch, tmp_path):
    """Every process that the demo starts, and a place of its own for temporary files."""
    started = []

    class Popen(subprocess.Popen[str]):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return started


def assert_nothing_is_left(processes, tmp_path):
    assert list(tmp_path.iterdir()) == []
    for process in processes:
        assert process.returncode is not None
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


def test_it_shows_the_whole_story_and_leaves_nothing_behind(capsys, processes, tmp_path):
    assert cli.main(["demo"]) == 0
    text = capsys.readouterr().out
    for line in (
        "   tf-smallest-node-0-0 is worker 0",
        '         "cluster": {',
        '             "tf-smallest-node-0-2.tf-smallest.default.svc.cluster.local:12345"',
        '         "task": {"type": "worker", "index": 0}',
        "     NCCL_IB_DISABLE=0",
        "     annotation k8s.v1.cni.cncf.io/networks: hostdevice-net",
        "Next",
    ):
        assert line in text.splitlines(), line
    assert "Error from server (Forbidden): error when creating" in text
    assert 'TF_TASK_INDEX=2, TF_CONFIG with "task": {"type": "worker", "index": 2}' in text
    assert "\033" not in text
    assert_nothing_is_left(processes, tmp_path)


def test_a_server_that_does_not_start_is_reported_with_its_log(
    capsys, monkeypatch, processes, tmp_path
):
    real = demo._serve_arguments
    monkeypatch.setattr(demo, "_serve_arguments", lambda *given: [*real(*given), "--nonsense"])
    assert cli.main(["demo"]) == 2
    error = capsys.readouterr().err
    assert "the server did not start:" in error
    assert "unrecognized arguments: --nonsense" in error
    assert_nothing_is_left(processes, tmp_path)


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("REFUSED", "RUNTIME", "the example tensorflow-distributed was unexpectedly allowed"),
        ("RUNTIME", "REFUSED", "the example tensorflow-refused was unexpectedly refused: TFA001"),
    ],
)
def test_the_story_is_not_told_when_it_is_untrue(
    name, other, words, capsys, monkeypatch, processes, tmp_path
):
    monkeypatch.setattr(examples, name, getattr(examples, other))
    monkeypatch.setattr(demo, "_tell_trainjob", lambda *given: None)
    monkeypatch.setattr(demo, "_tell_infiniband", lambda *given: None)
    monkeypatch.setattr(demo, "_expand", lambda *given: expansion.Source(manifest=given[0]))
    assert cli.main(["demo"]) == 2
    assert words in capsys.readouterr().err
    assert_nothing_is_left(processes, tmp_path)


def test_certificates_that_cannot_be_issued_are_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(fault.ClientError, match="tfadmit certs"):
        server.issue_certificates(tmp_path / "file" / "below")


def test_the_server_is_ended_when_the_telling_breaks(monkeypatch, processes, tmp_path):
    def broken(*arguments, **options):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(demo, "_tell", broken)
    with pytest.raises(RuntimeError, match="in the middle"):
        demo.main([])
    assert_nothing_is_left(processes, tmp_path)


def test_a_server_that_ignores_the_request_to_end_is_killed(monkeypatch, processes, tmp_path):
    code = (
        "import json, signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "print('{\"event\": \"other\"}', 'no json', json.dumps({'event': 'listening', "
        "'address': 'https://x'}), sep='\\n', file=sys.stderr, flush=True); time.sleep(60)"
    )
    monkeypatch.setattr(server, "_TFADMIT", (sys.executable, "-c", code))
    monkeypatch.setattr(server, "_STOP_SECONDS", 0.1)
    with server.running([]) as address:
        assert address == "https://x"
    assert processes[0].returncode == -9


def test_a_broken_connection_is_a_sentence(tmp_path):
    server.issue_certificates(tmp_path)
    authority = tmp_path / "ca.crt"
    with (
        pytest.raises(fault.ClientError, match=r"the connection to https://127\.0\.0\.1:1 broke: "),
        review.connected("https://127.0.0.1:1", authority=authority),
    ):
        pass


def test_the_review_is_as_the_api_server_writes_it():
    content = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team"}}
    request = review._review(content, user="me")["request"]
    assert request["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert (request["namespace"], request["operation"]) == ("team", "CREATE")
    assert "name" not in request
    assert json.dumps(request)


@needs_repository
@pytest.mark.parametrize("name", examples.ALL)
def test_the_copies_in_the_package_are_those_of_the_repository(name):
    """Mend it: cp deploy/{runtimes,examples}/FILE client/tfadmit_client/demo/example_files/"""
    original, copy = examples.DEPLOY / name, examples.COPIES / name.rpartition("/")[2]
    assert copy.read_text() == original.read_text()


def test_without_the_repository_the_copies_are_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(examples, "DEPLOY", tmp_path)
    for name in examples.ALL:
        assert examples.path(name).parent == examples.COPIES
        assert examples.path(name).is_file()


@needs_repository
def test_the_webhook_that_refuses_has_the_shipped_name():
    text = (examples.DEPLOY / "base/webhooks.yaml").read_text()
    names = [
        webhook["name"]
        for configuration in yaml.safe_load_all(text)
        for webhook in configuration["webhooks"]
    ]
    assert demo_text.REFUSING_WEBHOOK in names
