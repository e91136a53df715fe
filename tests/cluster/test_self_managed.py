"""The self-managed overlay at work: certificates come by themselves, and rights are enough."""

import json
import subprocess

import pytest
import yaml

from cluster import at_work, support
from harness import install

# So that a rotation takes seconds.
SETTLE = "certificates: {settle: 1s}"
# What the overlay does not hold and its programs make.
MADE = (
    ("Secret", "tfadmit-webhook-ca"),
    ("Secret", "tfadmit-webhook-tls"),
    ("Lease", "tfadmit-certs"),
)


@pytest.fixture(scope="module")
def overlay(cluster):
    return at_work.rendered(cluster, "self-managed")


@pytest.fixture(scope="module")
def programs(cluster, overlay, tmp_path_factory):
    directory = tmp_path_factory.mktemp("self-managed")
    try:
        with at_work.running(cluster, overlay, directory=directory, settings=SETTLE) as found:
            at_work.wait_until_ready(cluster, found)
            yield found
    finally:
        for kind, name in MADE:
            cluster.delete(kind, name, at_work.NAMESPACE)


def test_both_programs_get_ready_with_the_shipped_arguments_and_rights(cluster, programs):
    assert set(programs) == {"tfadmit-webhook", "tfadmit-certs"}
    found = at_work.bundles(cluster)
    assert len(found) == 5
    port = programs["tfadmit-webhook"].port
    assert len({at_work.shown(port, bundle) for bundle in found.values()}) == 1


def test_nothing_was_forbidden_to_them(programs):
    """A right that is missing would be tried again and again, and show in the log."""
    for program in programs.values():
        log = program.process.log.read_text()
        assert '"event"' in log
        assert "forbidden" not in log.lower()
        assert "not allowed" not in log


def test_applying_the_overlay_again_leaves_the_ca_bundle_alone(cluster, overlay, programs):
    before = at_work.bundles(cluster)
    hooks = yaml.safe_dump_all(item for item in overlay if item["kind"] in at_work.HOOKS)
    options = ("--server-side", "--force-conflicts")
    assert cluster.kubectl("apply", *options, "-f", "-", input=hooks).stderr == ""
    assert at_work.bundles(cluster) == before


def test_a_leaked_ca_leaves_the_bundle_as_the_runbook_says(cluster, programs):
    (old,) = set(at_work.bundles(cluster).values())
    rotate = [install.PROGRAM, "certs", "rotate", "--ca", "--kubeconfig", cluster.kubeconfig]
    done = subprocess.run(rotate, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    (both,) = set(at_work.bundles(cluster).values())
    assert old in both
    assert both != old
    patch = json.dumps([{"op": "remove", "path": "/data/retired.crt"}])
    assert patch in (support.ROOT / "docs/runbooks.md").read_text()
    secret = ("secret", "tfadmit-webhook-ca", "-n", at_work.NAMESPACE)
    cluster.kubectl("patch", *secret, "--type=json", "-p", patch)
    (new,) = cluster.wait(
        lambda: set(at_work.bundles(cluster).values()),
        until=lambda found: len(found) == 1 and old not in next(iter(found)),
        what="the old CA is out of every caBundle",
    )
    # Verified by the new CA alone.
    assert at_work.shown(programs["tfadmit-webhook"].port, new)
    assert programs["tfadmit-webhook"].answers("/readyz")
