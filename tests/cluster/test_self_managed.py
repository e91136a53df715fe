"""The self-managed overlay at work: both processes as shipped, with the arguments and rights of it.

Only what places pods is missing: the programs run beside the API server, each as its service
account. The Service leads nowhere here, so no review comes; what a caBundle is worth is tried by a
handshake under the name that the API server would ask for.
"""

import base64
import contextlib
import json
import socket
import ssl
import subprocess

import pytest
import yaml

from cluster import support
from harness import install, loopback
from harness.process import Process

NAMESPACE = "tfadmit-system"
NAME = "tfadmit-webhook.tfadmit-system.svc"
HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
PLACES_PODS = {"Deployment", "PodDisruptionBudget", "NetworkPolicy"}
MADE = (("Secret", "tfadmit-webhook-ca"), ("Secret", "tfadmit-webhook-tls"))
# Short, so that a rotation takes seconds.
CERTIFICATES = "\ncertificates: {settle: 1s}\n"


class Program:
    """One Deployment of the overlay as a process, with its own arguments."""

    def __init__(self, cluster, deployment, *, settings):
        name = deployment["metadata"]["name"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        self.port, self.metrics_port = loopback.free_port(), loopback.free_port()
        places = {
            "/etc/tfadmit/settings.yaml": [str(settings)],
            "0.0.0.0": ["127.0.0.1"],
            "10250": [str(self.port)],
            "8080": [str(self.metrics_port)],
            "--in-cluster": ["--kubeconfig", str(cluster.kubeconfig_of(name, NAMESPACE))],
        }
        command = [
            str(install.PROGRAM),
            *(part for argument in container["args"] for part in places.get(argument, [argument])),
        ]
        log = settings.parent / f"{name}.log"
        self.process = Process(name=name, command=command, log=log)

    def answers(self, path):
        return loopback.healthy(f"http://127.0.0.1:{self.metrics_port}{path}")

    def start(self):
        self.process.start(ready=lambda: self.answers("/healthz"))


@pytest.fixture(scope="module")
def overlay(cluster):
    text = cluster.kubectl("kustomize", str(support.ROOT / "deploy/overlays/self-managed")).stdout
    return [item for item in yaml.safe_load_all(text) if item]


@pytest.fixture(scope="module")
def programs(cluster, overlay, tmp_path_factory):
    (shipped,) = (item["data"]["settings.yaml"] for item in overlay if item["kind"] == "ConfigMap")
    settings = tmp_path_factory.mktemp("self-managed") / "settings.yaml"
    settings.write_text(shipped + CERTIFICATES)
    applied = [item for item in overlay if item["kind"] not in PLACES_PODS]
    with contextlib.ExitStack() as undo:
        for kind, name in MADE:
            undo.callback(cluster.delete, kind, name, NAMESPACE)
        undo.callback(cluster.delete, "Lease", "tfadmit-certs", NAMESPACE)
        for item in applied:
            metadata = cluster.apply(item)[0]["metadata"]
            if item["kind"] != "Namespace":
                where = metadata.get("namespace")
                undo.callback(cluster.delete, item["kind"], metadata["name"], where)
        found = {}
        for item in (item for item in overlay if item["kind"] == "Deployment"):
            program = Program(cluster, item, settings=settings)
            undo.callback(program.process.stop, grace=60)
            program.start()
            found[item["metadata"]["name"]] = program
        yield found


def bundles(cluster):
    """The caBundle of each webhook."""
    hooks = [hook for kind in HOOKS for hook in cluster.get(kind, "tfadmit")["webhooks"]]
    return {h["name"]: base64.b64decode(h["clientConfig"].get("caBundle", "")) for h in hooks}


def shown(port, bundle):
    """The certificate that the server shows, verified as the API server would."""
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as connection,
    ):
        return connection.getpeercert(binary_form=True)


def wait_until_ready(cluster, programs):
    for name, program in programs.items():
        cluster.wait(lambda program=program: program.answers("/readyz"), what=f"{name} is ready")


def test_both_processes_get_ready_with_the_shipped_arguments_and_rights(cluster, programs):
    wait_until_ready(cluster, programs)
    found = bundles(cluster)
    assert len(found) == 4
    server = programs["tfadmit-webhook"]
    # A handshake that does not verify raises.
    assert len({shown(server.port, bundle) for bundle in found.values()}) == 1


def test_nothing_was_forbidden_to_them(cluster, programs):
    """A right that is missing would be tried again and again, and show in the log."""
    wait_until_ready(cluster, programs)
    for program in programs.values():
        log = program.process.log.read_text()
        assert '"event"' in log
        assert "forbidden" not in log.lower()
        assert "not allowed" not in log


def test_applying_the_overlay_again_leaves_the_ca_bundle_alone(cluster, overlay, programs):
    wait_until_ready(cluster, programs)
    before = bundles(cluster)
    hooks = [item for item in overlay if item["kind"] in HOOKS]
    done = cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump_all(hooks)
    )
    assert done.stderr == ""
    assert bundles(cluster) == before


def test_a_leaked_ca_leaves_the_bundle_as_the_runbook_says_and_no_server_is_lost(cluster, programs):
    wait_until_ready(cluster, programs)
    server = programs["tfadmit-webhook"]
    (old,) = set(bundles(cluster).values())
    rotated = [install.PROGRAM, "certs", "rotate", "--ca", "--kubeconfig", cluster.kubeconfig]
    done = subprocess.run(rotated, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    (both,) = set(bundles(cluster).values())
    assert old in both
    assert both != old
    patch = [{"op": "remove", "path": "/data/retired.crt"}]
    assert json.dumps(patch) in (support.ROOT / "docs/runbooks.md").read_text()
    secret = ("secret", "tfadmit-webhook-ca", "-n", NAMESPACE)
    cluster.kubectl("patch", *secret, "--type=json", "-p", json.dumps(patch))
    new = cluster.wait(
        lambda: set(bundles(cluster).values()),
        until=lambda found: len(found) == 1 and old not in next(iter(found)),
        what="the old CA is out of every caBundle",
    )
    assert shown(server.port, next(iter(new)))
    assert server.answers("/readyz")
