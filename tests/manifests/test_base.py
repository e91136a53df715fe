"""The server's side of deploy/base: what all overlays share, with which rights, how hardened."""

from __future__ import annotations

import pytest
import yaml

from manifests import shipped
from tfadmit_webhook import life, settings

NAMESPACED = {
    "ConfigMap",
    "Deployment",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Service",
    "ServiceAccount",
}


@pytest.fixture
def deployment(base):
    return shipped.one(base, "Deployment")


@pytest.fixture
def pod(deployment):
    return deployment["spec"]["template"]["spec"]


@pytest.fixture
def container(pod):
    (only,) = pod["containers"]
    return only


def test_the_base_holds_exactly_these_objects(base):
    assert sorted(item["kind"] for item in base) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PriorityClass",
        "Service",
        "ServiceAccount",
        "ValidatingWebhookConfiguration",
    ]


def test_everything_namespaced_lies_in_the_own_namespace(base):
    assert shipped.one(base, "Namespace")["metadata"]["name"] == "tfadmit-system"
    places = {i["kind"]: i["metadata"].get("namespace") for i in base}
    assert places == {kind: "tfadmit-system" if kind in NAMESPACED else None for kind in places}


def test_the_namespace_enforces_the_restricted_pod_security_standard(base):
    labels = shipped.one(base, "Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_server_is_started_with_these_arguments(container):
    assert container["args"] == [
        "serve",
        *("--config", "/etc/tfadmit/settings.yaml"),
        *("--host", "0.0.0.0"),
        *("--port", "10250"),
        *("--metrics-port", "8080"),
        *("--webhook-configuration", "tfadmit"),
        "--in-cluster",
    ]
    assert "command" not in container


def test_the_files_of_the_arguments_are_mounted_read_only(base, container, pod):
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    volumes = {v["name"]: v for v in pod["volumes"]}
    assert {name: mount["mountPath"] for name, mount in mounts.items()} == {
        "settings": "/etc/tfadmit",
        "tmp": "/tmp",
    }
    assert mounts["settings"]["readOnly"] is True
    settings = shipped.one(base, "ConfigMap")
    assert volumes["settings"]["configMap"]["name"] == settings["metadata"]["name"]
    assert list(settings["data"]) == ["settings.yaml"]
    assert volumes["tmp"]["emptyDir"]["medium"] == "Memory"


def test_a_changed_settings_file_rolls_the_pods(base):
    """The name carries a hash of the content, and the Deployment names it."""
    name = shipped.one(base, "ConfigMap")["metadata"]["name"]
    assert name.startswith("tfadmit-settings-")


def test_the_settings_are_these(base):
    (text,) = shipped.one(base, "ConfigMap")["data"].values()
    assert yaml.safe_load(text) == {
        "clusterDomain": "cluster.local",
        "defaultPort": 12345,
        "maxInlineBytes": 32768,
        "server": {"threads": 32, "maxInFlight": 512, "maxBodyBytes": 8388608},
        "networkProfiles": [
            {
                "name": "infiniband",
                "resources": ["nvidia.com/hostdev", "rdma/*"],
                "attach": "hostdevice-net",
                "env": {
                    "NCCL_IB_DISABLE": "0",
                    "NCCL_SOCKET_IFNAME": "net",
                    "NCCL_DEBUG": "INFO",
                    "NCCL_DEBUG_SUBSYS": "INIT,NET,IB",
                },
            },
            {
                "name": "tcp",
                "resources": ["nvidia.com/gpu", "nvidia.com/mig-*", "amd.com/gpu"],
                "env": {
                    "NCCL_IB_DISABLE": "1",
                    "NCCL_SOCKET_IFNAME": "eth0",
                    "NCCL_DEBUG": "INFO",
                },
            },
        ],
        "policies": {"TFA001": "deny", "TFA002": "deny"},
        "transfer": {
            "image": "tfadmit/transfer:0.1.0",
            "resources": {"cpu": "250m", "memory": "512Mi"},
            "hostPaths": [],
        },
        "certificates": {
            "caLifetime": "8760h",
            "caRenewBefore": "2160h",
            "leafLifetime": "168h",
            "leafRenewBefore": "56h",
            "clockSkew": "1h",
            "settle": "60s",
        },
    }


@pytest.mark.parametrize(
    ("probe", "path"),
    [("startupProbe", "/healthz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")],
)
def test_probes_ask_the_port_that_needs_no_certificate(container, probe, path):
    assert container[probe]["httpGet"] == {"path": path, "port": "metrics"}


def test_a_rollout_never_leaves_the_api_server_without_an_answer(deployment, pod, container):
    spec = deployment["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    # The server drains on SIGTERM: a preStop would only keep the signal from it.
    assert "lifecycle" not in container
    assert pod["terminationGracePeriodSeconds"] == 90


def test_the_grace_period_holds_the_longest_drain_and_the_last_review(pod):
    server = settings.Server()
    assert (server.drain_seconds, server.drain_quiet_seconds) == (10, 5), "the comment says so"
    longest = server.drain_limit_seconds + life._FINISH_SECONDS
    # A tenth more for a machine that is busy.
    assert longest == 45 + 30
    assert pod["terminationGracePeriodSeconds"] >= longest * 1.1


def test_a_server_that_ends_is_out_of_the_service_before_it_stops_listening(container):
    """The endpoints go with the deletion; the probe is for whoever looks at readiness alone."""
    probe = container["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"]
    assert noticed <= settings.Server().drain_seconds


def test_replicas_are_spread_but_never_unschedulable_for_it(deployment, pod):
    labels = deployment["spec"]["selector"]["matchLabels"]
    anti_affinity = pod["affinity"]["podAntiAffinity"]
    assert list(anti_affinity) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    (preferred,) = anti_affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert preferred["podAffinityTerm"]["labelSelector"]["matchLabels"] == labels
    (spread,) = pod["topologySpreadConstraints"]
    assert spread["topologyKey"] == "topology.kubernetes.io/zone"
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"] == labels


def test_training_pods_cannot_preempt_the_server(base, pod):
    priority = shipped.one(base, "PriorityClass")
    assert pod["priorityClassName"] == priority["metadata"]["name"]
    assert priority["value"] == 1_000_000_000  # the highest that is not reserved for the system
    assert not priority.get("globalDefault")


def test_no_mesh_sidecar_stands_before_the_port(deployment):
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels["sidecar.istio.io/inject"] == "false"
