"""The command: what people type, read and get back as an exit code."""

import base64
import json
import re
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from tfadmit_certs import bundle, cli, files, issue
from unit.certs import builders


@pytest.fixture(name="run")
def make_run(tmp_path, capsys):
    """Run `issue` into a fresh directory; gives exit code, standard output, standard error."""

    def run(*argv, now=builders.NOW, out=tmp_path / "certs"):
        code = cli.main(["issue", "--out", str(out), *argv], clock=lambda: now)
        return code, *capsys.readouterr()

    return run


def held(tmp_path, name="tls.crt"):
    return (tmp_path / "certs" / name).read_bytes()


def facts(tmp_path, name="tls.crt"):
    return bundle.describe(bundle.parse(held(tmp_path, name))[0])


def test_names_come_from_repeated_and_from_listed_options(run, tmp_path):
    code, _, errors = run(
        "--dns",
        "a.team.svc",
        "b.team.svc",
        "--ip",
        "::1",
        "--dns",
        "c.team.svc",
        "--ip",
        "10.0.0.1",
    )
    assert (code, errors) == (0, "")
    assert str(facts(tmp_path).alt_names) == "a.team.svc, b.team.svc, c.team.svc, ::1, 10.0.0.1"


def test_one_call_leaves_nothing_for_the_next(run, tmp_path):
    run("--dns", "a.team.svc")
    run("--dns", "b.team.svc")
    assert facts(tmp_path).alt_names.dns == ("b.team.svc",)


def test_days_are_lifetimes(run, tmp_path):
    run("--dns", "a.svc", "--days", "7", "--ca-days", "30")
    assert facts(tmp_path).not_after == builders.SECOND + 7 * builders.DAY
    assert facts(tmp_path, "ca.crt").not_after == builders.SECOND + 30 * builders.DAY


def test_default_days_are_those_of_the_library(run, tmp_path):
    """They stand twice, because reading them from `issue` would load cryptography."""
    run("--dns", "a.svc")
    assert facts(tmp_path).not_after == builders.SECOND + issue.LEAF_LIFETIME
    assert facts(tmp_path, "ca.crt").not_after == builders.SECOND + issue.CA_LIFETIME


def test_people_read_what_was_written_and_how_to_use_it(run, tmp_path):
    _, output, _ = run("--dns", "a.team.svc", "--ip", "::1")
    lines = output.splitlines()
    assert lines[0] == f"made a new CA and issued a certificate in {tmp_path / 'certs'}"
    for name in ("ca.key", "ca.crt", "tls.key", "tls.crt"):
        assert str(tmp_path / "certs" / name) in output
    assert "names  a.team.svc, ::1" in lines
    assert "valid  2030-01-01 11:55:00 UTC to 2031-01-01 12:00:00 UTC" in lines
    key, _, value = lines[-1].partition(": ")
    assert key == "caBundle"
    assert base64.b64decode(value) == held(tmp_path, "ca.crt")
    assert "PRIVATE" not in output


def test_people_are_told_what_happened_to_the_ca(run):
    assert "made a new CA" in run("--dns", "a.svc")[1]
    again = run("--dns", "a.svc")[1]
    assert "reused the CA that was there" in again
    assert "stays as it is" in again
    assert "ca.key" not in again
    forced = run("--dns", "a.svc", "--force")[1]
    assert "replaced the CA" in forced
    assert "in place of the old caBundle" in forced


def test_people_are_told_when_the_ca_shortens_the_leaf(run):
    assert "it ends with its CA" in run("--dns", "a.svc", "--days", "90", "--ca-days", "30")[1]
    assert "it ends with its CA" not in run("--dns", "a.svc", "--days", "29")[1]


def test_programs_read_json(run, tmp_path):
    code, output, _ = run("--dns", "a.team.svc", "--ip", "::1", "-o", "json", "--days", "1")
    document = json.loads(output)
    assert code == 0
    assert set(document) == {"directory", "ca", "certificate", "written", "caBundle"}
    assert document["directory"] == str(tmp_path / "certs")
    assert document["ca"]["action"] == "created"
    assert document["ca"]["commonName"].startswith("tfadmit CA ")
    certificate = document["certificate"]
    assert re.fullmatch(r"[0-9a-f]{16,40}", certificate.pop("serialNumber"))
    assert certificate == {
        "commonName": "a.team.svc",
        "notBefore": "2030-01-01T11:55:00Z",
        "notAfter": "2030-01-02T12:00:00Z",
        "dnsNames": ["a.team.svc"],
        "ipAddresses": ["::1"],
    }
    assert base64.b64decode(document["caBundle"]) == held(tmp_path, "ca.crt")
    assert "PRIVATE" not in output


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        pytest.param([], "a certificate needs a name", id="no name"),
        pytest.param(["--dns"], "--dns: expected at least one argument", id="empty --dns"),
        pytest.param(["--dns", "a_b", "--ip", "x"], "2 names cannot stand", id="bad names"),
        pytest.param(["--dns", "a", "--days", "0"], "'0' is not a number of days", id="0 days"),
        pytest.param(["--dns", "a", "--days", "-1"], "'-1' is not a number", id="negative days"),
        pytest.param(["--dns", "a", "--days", "1.5"], "'1.5' is not a number", id="half days"),
        pytest.param(["--dns", "a", "--days", "²"], "'²' is not a number", id="odd digit"),
        pytest.param(["--dns", "a", "--ca-days", "36501"], "from 1 to 36500", id="over a century"),
        pytest.param(["--dns", "a", "--days", "9" * 5000], "from 1 to 36500", id="endless number"),
        pytest.param(["--dns", "a", "-o", "yaml"], "invalid choice: 'yaml'", id="unknown output"),
    ],
)
def test_a_mistake_is_a_sentence_and_code_2_and_writes_nothing(run, tmp_path, argv, expected):
    code, output, errors = run(*argv)
    assert (code, output) == (2, "")
    assert expected in errors
    assert "tfadmit certs issue: error: " in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize("argv", [[], ["sign"], ["issue"], ["issue", "--out", "x", "y"]])
def test_wrong_usage_is_code_2(capsys, argv):
    assert cli.main(argv, prog="tfadmit certs") == 2
    assert "usage: tfadmit certs" in capsys.readouterr().err


def test_a_refusal_says_what_mends_it(run, tmp_path):
    run("--dns", "a.svc")
    (tmp_path / "certs" / files.CA_KEY).unlink()
    code, output, errors = run("--dns", "a.svc")
    assert (code, output) == (2, "")
    assert errors.startswith("tfadmit certs issue: error: ")
    assert "put ca.key back" in errors
    assert "add --force" in errors


def test_an_expired_ca_is_refused_with_the_way_out(run):
    run("--dns", "a.svc", "--ca-days", "1")
    late = builders.NOW + timedelta(days=2)
    code, _, errors = run("--dns", "a.svc", now=late)
    assert code == 2
    assert "the CA certificate expired on 2030-01-02 12:00:00 UTC" in errors
    assert run("--dns", "a.svc", "--force", now=late)[0] == 0


def test_an_unusable_place_is_code_2(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, errors = run("--dns", "a.svc", out=tmp_path / "file")
    assert code == 2
    assert "cannot create the directory" in errors


def test_a_missing_library_is_named_with_its_extra(run, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("bundle", "issue", "files", "report"):
        monkeypatch.delitem(sys.modules, f"tfadmit_certs.{name}", raising=False)
        monkeypatch.delattr(f"tfadmit_certs.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    code, output, errors = run("--dns", "a.svc")
    assert (code, output) == (2, "")
    assert "pip install 'tfadmit[certs]'" in errors


def test_another_missing_module_is_not_hidden(run, monkeypatch):
    def broken(*_, **__):
        raise ModuleNotFoundError("no", name="json")

    monkeypatch.setattr(files, "fulfil", broken)
    with pytest.raises(ModuleNotFoundError):
        run("--dns", "a.svc")


def test_help_is_code_0_and_shows_an_example(capsys):
    assert cli.main(["issue", "--help"], prog="tfadmit certs") == 0
    assert "tfadmit certs issue --dns" in capsys.readouterr().out


def python(*argv):
    return subprocess.run([sys.executable, *argv], capture_output=True, text=True, check=False)


def test_help_is_fast_and_loads_no_cryptography():
    program = (
        "import sys; from tfadmit_certs import cli; cli.main(['issue', '--help']);"
        "sys.exit('cryptography' in sys.modules)"
    )
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        result = python("-c", program)
        durations.append(time.perf_counter() - start)
        assert result.returncode == 0, result.stderr
    assert min(durations) < 0.3  # the best of three: other tests may keep the machine busy


def test_the_module_runs_as_a_program(tmp_path):
    argv = ["-W", "error", "-m", "tfadmit_certs", "issue", "--out", str(tmp_path / "certs")]
    result = python(*argv, "--dns", "localhost", "--ip", "127.0.0.1", "-o", "json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["certificate"]["ipAddresses"] == ["127.0.0.1"]
    refused = python(*argv, "--dns", "a_b")
    assert refused.returncode == 2
    assert refused.stderr.startswith("python -m tfadmit_certs issue: error: 1 name cannot")
