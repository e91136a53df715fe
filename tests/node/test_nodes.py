"""The nodes themselves, without tfadmit: pods run, and reach each other and the API server."""

from __future__ import annotations

import re
import subprocess

import pytest

from harness import loopback
from harness.cluster import Cluster
from harness.node.nodes import Nodes
from harness.process import Process
from node import support

_SERVE = ("python", "-m", "http.server", "8000", "--directory", "/etc")
# Tried again for a while: a pod runs before its server listens, and a service is a moment later.
_FETCH = """
import sys, time, urllib.request
for attempt in range(60):
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode()); break
    except OSError as error:
        print(error, file=sys.stderr); time.sleep(0.5)
else:
    sys.exit(1)
"""


@pytest.fixture
def first(nodes: Nodes) -> str:
    """The name of a node."""
    return nodes.names[0]


@pytest.fixture
def last(nodes: Nodes) -> str:
    """Another one, where there is one."""
    return nodes.names[-1]


@pytest.fixture
def server(cluster: Cluster, namespace: str, first: str) -> str:
    """A server on the first node, behind a Service; the name of its pod."""
    labels = {"app": "server"}
    # kubectl port-forward ends at the first connection that is refused.
    probe = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    pod = support.pod(namespace, "server", *_SERVE, node=first, labels=labels, readinessProbe=probe)
    support.ready(cluster, pod)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    cluster.apply(service)
    return "server"


def fetch(url: str) -> tuple[str, ...]:
    return ("python", "-c", _FETCH, url)


def test_two_nodes_are_ready_and_two_pods_run_on_two_nodes(
    cluster: Cluster, namespace: str, nodes: Nodes
):
    if len(nodes.names) < 2:
        pytest.skip("there is one node")
    one, two = nodes.names[:2]
    pods = support.started(
        cluster,
        *(support.pod(namespace, f"on-{node}", "sleep", "600", node=node) for node in (one, two)),
    )
    assert [pod["spec"]["nodeName"] for pod in pods] == [one, two]
    assert len({pod["status"]["hostIP"] for pod in pods}) == 2


@pytest.mark.parametrize("node", [0, -1], ids=["the server's node", "the other node"])
def test_a_pod_reaches_a_service_by_name_from_both_nodes(
    cluster: Cluster, namespace: str, server: str, nodes: Nodes, node: int
):
    url = f"http://web.{namespace}.svc.cluster.local/os-release"
    printed = support.output(
        cluster, support.pod(namespace, "client", *fetch(url), node=nodes.names[node])
    )
    assert "VERSION_CODENAME=trixie" in printed


def test_a_pod_sees_its_peer_on_the_other_node_under_its_own_address(
    cluster: Cluster, namespace: str, server: str, last: str
):
    address = cluster.get("Pod", server, namespace)["status"]["podIP"]
    client = support.pod(namespace, "client", *fetch(f"http://{address}:8000/"), node=last)
    support.ended(cluster, client)
    own = cluster.get("Pod", "client", namespace)["status"]["podIP"]
    assert own in support.logs(cluster, namespace, server)


def test_a_pod_reaches_the_api_server_with_its_own_token(cluster: Cluster, namespace: str):
    ask = """
import json, ssl, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount/"
trust = ssl.create_default_context(cafile=place + "ca.crt")
request = urllib.request.Request(
    "https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}',
    headers={"Authorization": "Bearer " + open(place + "token").read(),
             "Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request, context=trust))["status"]["userInfo"]["username"])
"""
    printed = support.output(cluster, support.pod(namespace, "asks", "python", "-c", ask))
    assert printed == f"system:serviceaccount:{namespace}:default\n"


def test_logs_and_exec_reach_the_pod(cluster: Cluster, namespace: str, last: str):
    say = ("sh", "-c", "echo hello; echo trouble >&2; exec sleep 600")
    support.started(cluster, support.pod(namespace, "talks", *say, node=last))
    cluster.wait(
        lambda: support.logs(cluster, namespace, "talks").splitlines(),
        until=lambda lines: sorted(lines) == ["hello", "trouble"],
        what="both lines in the logs",
    )
    inside = cluster.kubectl("exec", "talks", "-n", namespace, "--", "id", "-u")
    assert inside.stdout == "65532\n"
    failed = cluster.kubectl(
        "exec", "talks", "-n", namespace, "--", "sh", "-c", "exit 7", check=False
    )
    assert failed.returncode == 7


def test_port_forward_reaches_the_pod(cluster: Cluster, namespace: str, server: str):
    port = loopback.free_port()
    forward = Process(
        name="kubectl port-forward",
        command=[
            *(cluster.program, f"--kubeconfig={cluster.kubeconfig}", "--namespace", namespace),
            *("port-forward", "service/web", f"{port}:80"),
        ],
        log=cluster.directory / "port-forward.log",
    )
    try:
        forward.start(ready=lambda: loopback.healthy(f"http://127.0.0.1:{port}/os-release"))
    finally:
        forward.stop()


def test_a_container_that_takes_too_much_memory_is_killed(cluster: Cluster, namespace: str):
    greedy = ("python", "-c", "x = bytearray(200_000_000); print(len(x))")
    limits = {"limits": {"memory": "100Mi"}}
    greedy_pod = support.pod(namespace, "greedy", *greedy, resources=limits)
    pod = support.ended(cluster, greedy_pod, well=False)
    (status,) = pod["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"


def test_the_tests_machine_has_no_rule_of_ours(cluster: Cluster):
    done = subprocess.run(["/usr/sbin/iptables-save"], capture_output=True, text=True, check=True)
    assert not re.search("KUBE-", done.stdout)
