"""The command line: arguments in, a server or every fault out."""

import json
import socket
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

import pytest

import builders
from tfadmit_webhook import cli, plan, serve, server
from unit.webhook import live_server, pairs


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = live_server.certificates(tmp_path_factory.mktemp("cli"))
    (directory / "objects.yaml").write_text(json.dumps(builders.make_jobset()))
    return directory


@pytest.fixture
def run(directory, capsys, monkeypatch):
    """Runs the command without serving; gives the exit code, the lines of errors and the plans."""
    plans: list[server.Plan] = []

    def take(planned, _signals):
        plans.append(planned)
        return 0

    monkeypatch.setattr(serve, "run", take)
    monkeypatch.setattr("tfadmit_webhook.json_log.install", lambda: None)

    def run(*options, tls=True, objects=True):
        files = ["--tls-cert", directory / "tls.crt", "--tls-key", directory / "tls.key"]
        source = ["--objects", directory / "objects.yaml"]
        arguments = [*(files if tls else []), *(source if objects else []), *options]
        code = cli.main([str(item) for item in arguments])
        return code, capsys.readouterr().err.splitlines(), plans

    return run


def test_defaults_are_those_of_a_pod(run):
    code, errors, (planned,) = run()
    assert (code, errors) == (0, [])
    assert (planned.host, planned.port, planned.metrics_port) == ("0.0.0.0", 10250, 8080)


def test_options_are_taken(run):
    _, _, (planned,) = run("--host", "::1", "--port", "0", "--no-metrics")
    assert (planned.host, planned.port, planned.metrics_port) == ("::1", 0, None)


def test_settings_are_read_from_the_file(run, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("server: {threads: 3}")
    _, _, (planned,) = run("--config", path)
    assert planned.settings.server.threads == 3


def test_all_faults_come_at_once(run, tmp_path):
    settings, broken = tmp_path / "settings.yaml", tmp_path / "broken.yaml"
    settings.write_text("server: {thread: 3}\ndefaultPort: 0\n")
    broken.write_text("[")
    code, errors, plans = run(
        *("--config", settings, "--tls-cert", tmp_path / "gone.crt", "--tls-key", broken),
        *("--objects", broken, tmp_path / "gone.yaml"),
        tls=False,
        objects=False,
    )
    assert (code, plans) == (2, [])
    assert all(line.startswith("tfadmit serve: error: ") for line in errors)
    found = "\n".join(errors)
    for expected in (
        "settings.yaml: defaultPort: is 0",
        "server.thread: there is no such setting: did you mean threads?",
        "--tls-cert",
        "broken.yaml: no readable YAML",
        "gone.yaml: No such file or directory",
    ):
        assert expected in found


def test_an_unknown_rule_is_refused_with_those_that_are_known(run, tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("policies: {TFA999: deny}")
    code, errors, _ = run("--config", path)
    assert code == 2
    assert "policies.TFA999: no such rule: use TFA001, TFA002" in errors[0]


@pytest.mark.parametrize(
    ("content", "expected"), [(None, "No such file or directory"), (b"\xff", "is no UTF-8 text")]
)
def test_an_unreadable_settings_file_is_named(run, tmp_path, content, expected):
    path = tmp_path / "settings.yaml"
    if content is not None:
        path.write_bytes(content)
    assert run("--config", path)[:2] == (2, [f"tfadmit serve: error: --config {path}: {expected}"])


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--in-cluster", "--kubeconfig", "x"),
        ("--in-cluster", "--objects", "x"),
    ],
)
def test_exactly_one_source_of_lookups_is_wanted(run, options):
    code, errors, _ = run(*options, objects=False)
    assert code == 2
    assert "--in-cluster" in errors[-1]


SECRET = ("--tls-secret", "ns/name")


@pytest.mark.parametrize(
    ("options", "tls", "words"),
    [
        ((), False, "a certificate is missing: --tls-cert and --tls-key, or --tls-secret"),
        (SECRET, True, "--tls-secret stands in place of --tls-cert and --tls-key"),
        (SECRET, False, "--tls-secret is asked of a cluster: give --in-cluster or --kubeconfig"),
        (("--webhook-configuration", "x"), True, "--webhook-configuration is asked of a cluster"),
        (("--client-name", "x"), True, "--client-name says nothing without --client-ca"),
        (("--client-ca", "gone"), True, "--client-ca gone: No such file or directory"),
        (("--client-ca", __file__), True, "--client-ca holds no readable PEM certificate"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, options, tls, words):
    code, errors, plans = run(*options, tls=tls)
    assert (code, plans) == (2, [])
    assert words in "\n".join(errors)


@pytest.mark.parametrize("text", ["name", "/name", "ns/", "a/b/c"])
def test_a_secret_is_a_namespace_and_a_name(run, text):
    code, errors, _ = run("--tls-secret", text, tls=False)
    assert code == 2
    assert f"'{text}' is no Secret: use NAMESPACE/NAME" in errors[-1]


def test_a_key_of_another_certificate_is_named_with_both_files(run, tmp_path):
    other = live_server.certificates(tmp_path)
    code, errors, _ = run("--tls-key", other / "tls.key")
    assert (code, len(errors)) == (2, 1)
    assert f"--tls-key {other / 'tls.key'} does not belong to --tls-cert" in errors[0]


def test_dates_are_no_reason_not_to_start(run, tmp_path):
    then = datetime.now(timezone.utc) - timedelta(days=900)
    pair = pairs.make(now=then)
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    code, errors, plans = run("--tls-cert", tmp_path / "tls.crt", "--tls-key", tmp_path / "tls.key")
    assert (code, errors, len(plans)) == (0, [], 1)


@pytest.mark.parametrize("port", ["-1", "65536", "http", "1e3", "\u0663"])
def test_a_port_must_be_one(run, port):
    code, errors, _ = run("--port", port)
    assert code == 2
    assert "is no port: use 0 to 65535" in errors[-1]


def test_outside_of_a_cluster_the_way_out_is_named(run, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, errors, _ = run("--in-cluster", objects=False)
    assert code == 2
    assert "use --kubeconfig FILE" in errors[0]


def test_a_cluster_that_is_not_reached_is_no_reason_not_to_start(run, tmp_path):
    path = tmp_path / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    path.write_text(json.dumps(config))
    code, errors, plans = run("--kubeconfig", path, objects=False)
    assert (code, errors, len(plans)) == (0, [], 1)


def test_manifests_answer_lookups(run, tmp_path):
    path = tmp_path / "more.yaml"
    path.write_text(
        "kind: Pod\n---\n---\nkind: JobSetList\nitems:\n- kind: Job\n  metadata: {name: a}\n"
    )
    _, _, (planned,) = run("--objects", path, objects=False)
    source = planned.source(None)
    source.start()
    assert source.live_job(namespace="default", name="a", timeout=1)
    assert source.failing() == []
    source.stop()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 2024-99-99", "month must be in 1..12"),
        (f"a: {'9' * 5000}", "Exceeds the limit"),
        ("[" * 3000, "nested too deep"),
        ("kind: List\nitems: &a\n- kind: List\n  items: *a\n", "nested too deep"),
    ],
)
def test_manifests_that_cannot_be_read_are_named(run, tmp_path, text, expected):
    path = tmp_path / "more.yaml"
    path.write_text(text)
    code, errors, _ = run("--objects", path, objects=False)
    assert (code, len(errors)) == (2, 1)
    assert errors[0].startswith(f"tfadmit serve: error: --objects {path}: no readable YAML: ")
    assert expected in errors[0]


def test_a_manifest_of_a_strange_kind_is_passed_by_and_a_null_namespace_is_default(run, tmp_path):
    path = tmp_path / "more.yaml"
    path.write_text("kind: [Job]\n---\nkind: Job\nmetadata: {name: a, namespace: null}\n")
    _, _, (planned,) = run("--objects", path, objects=False)
    assert planned.source(None).live_job(namespace="default", name="a", timeout=1)


@pytest.mark.parametrize("package", ["flask", "aiohttp", "yaml"])
def test_a_missing_extra_is_named_with_the_command(run, monkeypatch, package):
    def missing(_arguments):
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr(plan, "make", missing)
    expected = f"tfadmit serve: error: {package} is not installed: pip install 'tfadmit[webhook]'"
    assert run()[:2] == (2, [expected])


def test_a_missing_module_of_ours_is_a_fault(run, monkeypatch):
    def missing(_arguments):
        raise ModuleNotFoundError("No module named 'json5'", name="json5")

    monkeypatch.setattr(plan, "make", missing)
    with pytest.raises(ModuleNotFoundError):
        run()


def python(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
    )


def test_help_loads_nothing_heavy():
    began = time.monotonic()
    done = python("-X", "importtime", "-m", "tfadmit_webhook", "--help")
    assert time.monotonic() - began < 1, "0.05 s on an idle machine"
    assert "python -m tfadmit_webhook --tls-secret" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"flask", "aiohttp", "kubernetes", "prometheus_client", "pydantic", "yaml"}


@pytest.mark.parametrize("option", ["--port", "--metrics-port"])
def test_a_port_that_is_taken_ends_the_process_with_a_message(directory, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = python(
            *("-W", "error", "-m", "tfadmit_webhook", "--host", "127.0.0.1"),
            *("--tls-cert", directory / "tls.crt", "--tls-key", directory / "tls.key"),
            *("--objects", directory / "objects.yaml", "--port", "0", "--metrics-port", "0"),
            *(option, port),
        )
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr.splitlines()[-1]
    assert "Address already in use" in done.stderr
    assert "Traceback" not in done.stderr
