"""Progress reaches Trainer's status server over real TLS, and never disturbs a training."""

import http.server
import json
import ssl
import threading
from datetime import datetime, timezone

import pytest

from harness import certificates
from tfadmit_trainer import progress
from tfadmit_trainer.contract import Cluster
from unit.trainer import trainings

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=timezone.utc)


class Server(http.server.ThreadingHTTPServer):
    """Keeps what it was told."""

    def __init__(self, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.told, self.status, self.environ = [], 200, {}


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_args):
        """Say nothing."""


@pytest.fixture
def server(tmp_path):
    files = certificates.serving_certificate(directory=tmp_path, host="127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.certificate, files.key)
    with Server(tls) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        token = tmp_path / "token"
        token.write_text("secret\n")
        running.environ = {
            "KUBEFLOW_TRAINER_SERVER_URL": f"https://127.0.0.1:{running.server_port}/status",
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": str(files.ca),
            "KUBEFLOW_TRAINER_SERVER_TOKEN": str(token),
        }
        yield running
        running.shutdown()


def reporter(server, index=0):
    task = trainings.task(Cluster(worker=("w:1", "w:2")), index)
    return progress.Reporter(task, environ=server.environ)


def test_a_status_as_trainer_reads_it():
    found = progress.status(
        fraction=0.337, metrics={"loss": 1.23456789, "": 1.0}, remaining=61.8, now=NOW
    )
    assert found == {
        "trainerStatus": {
            "progressPercentage": 33,
            "estimatedRemainingSeconds": 61,
            "metrics": [{"name": "loss", "value": "1.23457"}],
            "lastUpdatedTime": "2026-11-30T12:00:00Z",
        }
    }


def test_a_status_keeps_within_trainers_limits():
    many = {"x" * 100 + str(number): 1.0 for number in range(300)}
    status = progress.status(fraction=1.7, metrics=many, remaining=-1, now=NOW)["trainerStatus"]
    assert status["progressPercentage"] == 100
    assert status["estimatedRemainingSeconds"] == 0
    assert len(status["metrics"]) == 256
    assert all(len(metric["name"]) == 64 for metric in status["metrics"])


def test_the_last_status_arrives_with_the_token_and_the_log_has_a_line(server, capsys):
    reporter(server).report(fraction=1, metrics={"loss": 0.5}, what="epoch 3/3")
    ((path, headers, body),) = server.told
    assert path == "/status"
    assert headers["Authorization"] == "Bearer secret"
    assert body["trainerStatus"]["progressPercentage"] == 100
    assert "[tfadmit] epoch 3/3 (100%): loss 0.5000" in capsys.readouterr().err


def test_no_more_than_one_status_in_five_seconds_but_always_the_last(server):
    chief = reporter(server)
    for number in range(1, 11):
        chief.report(fraction=number / 10, metrics={}, what="step")
    told = [body["trainerStatus"]["progressPercentage"] for _, _, body in server.told]
    assert told == [10, 100]


def test_only_the_chief_reports(server, capsys):
    reporter(server, index=1).report(fraction=1, metrics={}, what="epoch")
    assert server.told == []
    assert capsys.readouterr().err == ""


def test_a_server_that_refuses_or_is_gone_disturbs_nobody(server, capsys):
    server.status = 403
    chief = reporter(server)
    chief.report(fraction=1, metrics={}, what="epoch")
    chief.report(fraction=1, metrics={}, what="epoch")
    assert capsys.readouterr().err.count("did not take the progress: HTTP Error 403") == 1


def test_a_server_with_a_certificate_of_somebody_else_gets_no_token(server, tmp_path, capsys):
    other = certificates.serving_certificate(directory=tmp_path / "other", host="127.0.0.1")
    server.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"] = str(other.ca)
    reporter(server).report(fraction=1, metrics={}, what="epoch")
    assert server.told == []
    assert "certificate verify failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"KUBEFLOW_TRAINER_SERVER_URL": "https://x/status"},
        {
            "KUBEFLOW_TRAINER_SERVER_URL": "http://x/status",
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": "/ca",
            "KUBEFLOW_TRAINER_SERVER_TOKEN": "/token",
        },
    ],
)
def test_without_all_of_it_or_without_tls_nothing_is_sent(environ):
    assert progress.target_from(environ) is None
