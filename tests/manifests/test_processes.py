"""What holds for each Deployment: hardened, spread, bounded, started with known arguments."""

from __future__ import annotations

import subprocess
import sys

import pytest

from manifests import shipped

PROCESSES = [
    ("self_managed", "tfadmit-webhook"),
    ("self_managed", "tfadmit-certs"),
    ("cert_manager", "tfadmit-webhook"),
    ("files", "tfadmit-webhook"),
]
pytestmark = pytest.mark.parametrize(
    ("where", "name"), PROCESSES, ids=[f"{where}-{name}" for where, name in PROCESSES]
)


@pytest.fixture
def objects(request, where):
    return request.getfixturevalue(where)


@pytest.fixture
def pod(objects, name):
    return shipped.pod_spec(objects, name)


@pytest.fixture
def container(pod):
    (only,) = pod["containers"]
    assert "initContainers" not in pod
    return only


@pytest.fixture
def labels(objects, name):
    return shipped.named(objects, "Deployment", name)["spec"]["selector"]["matchLabels"]


def test_the_command_knows_its_arguments(container, name, where):
    """Away from its pod the real command stops at the settings file; argparse had no complaint."""
    done = subprocess.run(
        [sys.executable, "-m", "tfadmit_client", *container["args"]],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert "/etc/tfadmit/settings.yaml" in done.stderr
    assert "usage:" not in done.stderr


def test_the_pod_meets_the_restricted_standard_and_more(pod, container, name, where):
    # Files of a Secret are readable to the user through a group only.
    mounts_a_key = any("secret" in volume for volume in pod["volumes"])
    expected = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    context = dict(pod["securityContext"])
    if name == "tfadmit-webhook":
        assert context.pop("fsGroup") == 65532
    assert context == expected
    assert name == "tfadmit-webhook" or not mounts_a_key
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


def test_nothing_can_be_written_but_memory(pod, container, name, where):
    writable = {m["name"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"tmp"}
    (volume,) = (v for v in pod["volumes"] if v["name"] == "tmp")
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Mi"}


def test_memory_is_limited_and_cpu_is_not(container, name, where):
    """Throttling turns a burst of pods into timeouts."""
    assert set(container["resources"]["requests"]) == {"cpu", "memory"}
    assert set(container["resources"]["limits"]) == {"memory"}


def test_everything_that_selects_pods_selects_these_alone(objects, labels, name, where):
    deployments = [item for item in objects if item["kind"] == "Deployment"]
    selected = [
        item["metadata"]["name"]
        for item in deployments
        if labels.items() <= item["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert selected == [name]
    assert shipped.named(objects, "Service", name)["spec"]["selector"] == labels
    policy = shipped.named(objects, "NetworkPolicy", name)["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    budget = shipped.named(objects, "PodDisruptionBudget", name)["spec"]
    assert budget["selector"]["matchLabels"] == labels


def test_a_drain_takes_one_replica_at_a_time_and_broken_ones_at_once(objects, name, where):
    spec = shipped.named(objects, "PodDisruptionBudget", name)["spec"]
    assert spec["maxUnavailable"] == 1
    assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert shipped.named(objects, "Deployment", name)["spec"]["replicas"] >= 2


def test_replicas_prefer_nodes_of_their_own(pod, labels, name, where):
    anti_affinity = pod["affinity"]["podAntiAffinity"]
    assert list(anti_affinity) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    (preferred,) = anti_affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert preferred["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels


def test_the_network_is_closed_but_for_its_ports_and_the_api_server(
    objects, container, name, where
):
    spec = shipped.named(objects, "NetworkPolicy", name)["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    opened = {port["port"] for entry in spec["ingress"] for port in entry["ports"]}
    assert opened == {port["name"] for port in container["ports"]}
    (metrics,) = (e for e in spec["ingress"] if e["ports"][0]["port"] == "metrics")
    assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]
    (api_server,) = spec["egress"]
    assert [entry["port"] for entry in api_server["ports"]] == [443, 6443, 16443]


def test_the_probes_ask_ports_that_exist(container, name, where):
    probes = [container[key] for key in container if key.endswith("Probe")]
    assert {probe["httpGet"]["path"] for probe in probes} == {"/healthz", "/readyz"}
    ports = {port["name"] for port in container["ports"]}
    assert {probe["httpGet"]["port"] for probe in probes} <= ports
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
