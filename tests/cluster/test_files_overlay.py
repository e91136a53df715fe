"""The overlay `files` at work: the commands of deploy/README.md, and a server that waits for them.

The server of the cert-manager overlay is the same one; only who writes the files is another.
"""

import subprocess

import pytest

from cluster import at_work
from harness import install


def tfadmit(*arguments):
    command = [str(install.PROGRAM), *(str(part) for part in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def issue(directory, *options):
    tfadmit("certs", "issue", "--dns", at_work.NAME, "--out", directory, *options)


@pytest.fixture
def issued(tmp_path):
    issue(tmp_path / "tls")
    return tmp_path / "tls"


@pytest.fixture
def server(cluster, issued, tmp_path):
    overlay = at_work.rendered(cluster, "files")
    files = {f"/tls/{name}": issued / name for name in ("tls.crt", "tls.key")}
    with at_work.running(cluster, overlay, directory=tmp_path, files=files) as programs:
        assert list(programs) == ["tfadmit-webhook"]
        yield programs["tfadmit-webhook"]


def inject(cluster, file):
    tfadmit("certs", "inject", "--ca-file", file, "--kubeconfig", cluster.kubeconfig)


def test_the_server_is_ready_once_the_ca_is_injected_and_shows_a_renewed_certificate(
    cluster, server, issued
):
    assert set(at_work.bundles(cluster).values()) == {b""}
    assert not server.answers("/readyz")
    inject(cluster, issued / "ca.crt")
    at_work.wait_until_ready(cluster, {"tfadmit-webhook": server})
    (bundle,) = set(at_work.bundles(cluster).values())
    first = at_work.shown(server.port, bundle)
    # The CA in the folder signs the new one.
    issue(issued)
    cluster.wait(
        lambda: at_work.shown(server.port, bundle),
        until=lambda certificate: certificate != first,
        what="the renewed certificate is shown",
    )


def test_a_new_ca_is_taken_over_by_way_of_both(cluster, server, issued):
    inject(cluster, issued / "ca.crt")
    at_work.wait_until_ready(cluster, {"tfadmit-webhook": server})
    old = (issued / "ca.crt").read_bytes()
    issue(issued.with_name("new"))
    new = (issued.with_name("new") / "ca.crt").read_bytes()
    both = issued / "both.crt"
    both.write_bytes(old + new)
    inject(cluster, both)
    (bundle,) = set(at_work.bundles(cluster).values())
    first = at_work.shown(server.port, bundle)
    for name in ("tls.key", "tls.crt"):
        (issued / name).write_bytes((issued.with_name("new") / name).read_bytes())
    cluster.wait(
        lambda: at_work.shown(server.port, bundle),
        until=lambda certificate: certificate != first,
        what="the certificate of the new CA is shown",
    )
    inject(cluster, issued.with_name("new") / "ca.crt")
    (bundle,) = set(at_work.bundles(cluster).values())
    assert at_work.shown(server.port, bundle)
