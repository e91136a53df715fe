"""The kubelet and kube-proxy of one node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from harness import loopback
from harness.node import plan, programs, runtime
from harness.node.machine import Machine
from harness.process import Process

KUBELET_PORT = 10250
_HEALTH_PORT = 10248
_PROXY_HEALTH_PORT = 10256


def kubelet(
    node: plan.Node, *, machine: Machine, found: programs.Programs, kubeconfig: Path
) -> Process:
    """The kubelet, started; it registers its node by itself."""
    directory = machine.directory
    resolv = directory / "resolv.conf"
    resolv.write_text("")
    file = directory / "kubelet.json"
    file.write_text(json.dumps(_kubelet(node, resolv=resolv)))
    command: list[str | Path] = [
        found.kubelet,
        f"--config={file}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        "--root-dir=/var/lib/kubelet",
        f"--cert-dir={directory}/kubelet-certificates",
    ]
    url = f"http://{node.address}:{_HEALTH_PORT}/healthz"
    return _start(f"kubelet of {node.name}", command, machine=machine, log="kubelet.log", url=url)


def proxy(
    node: plan.Node, *, machine: Machine, found: programs.Programs, kubeconfig: Path
) -> Process:
    """kube-proxy, started."""
    file = machine.directory / "kube-proxy.json"
    file.write_text(json.dumps(_proxy(node, kubeconfig=kubeconfig)))
    command: list[str | Path] = [
        found.kube_proxy,
        f"--config={file}",
        f"--hostname-override={node.name}",
    ]
    url = f"http://{node.address}:{_PROXY_HEALTH_PORT}/healthz"
    name = f"kube-proxy of {node.name}"
    return _start(name, command, machine=machine, log="kube-proxy.log", url=url)


def _start(
    name: str, command: list[str | Path], *, machine: Machine, log: str, url: str
) -> Process:
    process = Process(
        name=name,
        command=machine.inside(*command),
        log=machine.directory / log,
        environ={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    return process.start(ready=lambda: loopback.healthy(url))


def _kubelet(node: plan.Node, *, resolv: Path) -> Mapping[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "port": KUBELET_PORT,
        "healthzBindAddress": node.address,
        "healthzPort": _HEALTH_PORT,
        "containerRuntimeEndpoint": runtime.ENDPOINT,
        "clusterDNS": [plan.DNS_SERVICE],
        "clusterDomain": plan.DNS_DOMAIN,
        "resolvConf": str(resolv),
        # Only the tests' machine and the pods of the tests reach it.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        # One group for all containers, which is easily found and removed, and no groups by class of
        # service, which the machine may not allow. Limits of containers are kept in any case.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "cgroupRoot": node.control_group,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        # The machine's disk and memory are not the node's alone: nothing is evicted for them.
        "localStorageCapacityIsolation": False,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        # The images are handed over; there is no registry from which they could come again.
        "maxPods": 200,
        # A node that is gone is noticed by the time that a test waits.
        "nodeStatusUpdateFrequency": "5s",
    }


def _proxy(node: plan.Node, *, kubeconfig: Path) -> Mapping[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "bindAddress": node.address,
        "nodePortAddresses": ["primary"],
        "healthzBindAddress": f"{node.address}:{_PROXY_HEALTH_PORT}",
        "metricsBindAddress": "127.0.0.1:10249",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        # Senders elsewhere, such as the API server, are masked, so that answers come back this way.
        "detectLocalMode": "ClusterCIDR",
        "clusterCIDR": node.pods,
        # These are settings of the whole kernel: 0 leaves them as they are.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        # At once: a pod that ends is taken out of its services before its address is dead.
        "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
    }
