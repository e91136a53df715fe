"""TFA012: pods in the host's network keep the names of the cluster, and ports of their own.

With `hostNetwork: true` a pod asks the node's DNS server, which knows no Service of the cluster,
unless dnsPolicy is ClusterFirstWithHostNet. All pods of a node then share its ports: two tasks
with one port can only run on different nodes.
"""

from collections.abc import Iterator

from tfadmit_webhook import runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule

DNS_POLICY = "ClusterFirstWithHostNet"


def check(case: Case) -> Iterator[Finding]:
    """Find pods without the cluster's names, and roles on one port of the host."""
    hosted = [job for job in case.tasks if job.pod.spec.get("hostNetwork") is True]
    ports: dict[int, runtime.Job] = {}
    for job in hosted:
        if job.pod.spec.get("dnsPolicy") != DNS_POLICY:
            yield Finding(
                path=(*job.template_path, "spec", "dnsPolicy"),
                what="leaves pods in the host's network without the cluster's names",
                fix=f"`dnsPolicy: {DNS_POLICY}`",
            )
        port = job.group.port or case.settings.default_port
        if other := ports.get(port):
            yield Finding(
                path=(*job.template_path, "spec", "hostNetwork"),
                what=f"shares port {port} of the host with {other.name!r}",
                why="tasks with one port can only run on different nodes",
                fix="another port in env TF_WORKER_PORT of one of them",
                only_warn=True,
            )
        ports.setdefault(port, job)


RULE = Rule(
    id="TFA012",
    name="host-network",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="no address in TF_CONFIG would resolve",
    check=check,
)
