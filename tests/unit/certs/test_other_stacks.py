"""Go (the API server's TLS) and openssl (everybody's tool) accept the chain, at chosen moments."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from unit.certs import builders

NAMES = builders.make_names(
    dns=["hook.team.svc", "*.wild.team.svc"], ips=["10.1.2.3", "2001:db8::1"]
)
VERIFY_GO = Path(__file__).with_name("verify.go.txt")
GOOD = ["hook.team.svc", "any.wild.team.svc", "10.1.2.3", "2001:db8::1"]
AFTER = 11 * builders.DAY


@pytest.fixture(scope="module", name="directory")
def make_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("chain")
    ca = builders.make_ca()
    leaf = builders.make_leaf(ca, names=NAMES)
    (directory / "ca.crt").write_bytes(ca.certificate)
    (directory / "tls.crt").write_bytes(leaf.certificate)
    return directory


@pytest.fixture(scope="module", name="openssl")
def make_openssl(directory):
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not on PATH")

    def verify(name, when):
        kind = "-verify_ip" if name[0].isdigit() else "-verify_hostname"
        command = [program, "verify", "-x509_strict", "-purpose", "sslserver", kind, name]
        command += ["-attime", str(int(when.timestamp())), "-CAfile", "ca.crt", "tls.crt"]
        return run(command, directory)

    return verify


@pytest.fixture(scope="module", name="go")
def make_go(directory):
    program = shutil.which("go")
    if program is None:
        pytest.skip("go is not on PATH")
    shutil.copy(VERIFY_GO, directory / "verify.go")
    built = run([program, "build", "-o", "verify", "verify.go"], directory)
    if built.returncode:
        pytest.skip(f"go cannot build here: {built.stderr.strip()[-200:]}")

    def verify(name, when):
        return run(["./verify", "ca.crt", "tls.crt", name, str(int(when.timestamp()))], directory)

    return verify


def run(command, directory):
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)  # the first build on a machine compiles Go's crypto packages
@pytest.mark.parametrize("stack", ["openssl", "go"])
class TestStacks:
    @pytest.fixture(name="verify")
    def make_verify(self, request, stack):
        return request.getfixturevalue(stack)

    @pytest.mark.parametrize("name", GOOD)
    def test_each_name_is_accepted(self, verify, name):
        result = verify(name, builders.NOW)
        assert result.returncode == 0, result.stderr

    @pytest.mark.parametrize(
        ("name", "offset"),
        [
            pytest.param("other.team.svc", timedelta(0), id="other name"),
            pytest.param("10.1.2.4", timedelta(0), id="other address"),
            pytest.param("hook.team.svc", AFTER, id="expired"),
            pytest.param("hook.team.svc", -timedelta(minutes=6), id="not yet valid"),
        ],
    )
    def test_what_does_not_hold_is_refused(self, verify, name, offset):
        assert verify(name, builders.NOW + offset).returncode != 0
