"""The environment of a training's tasks, as the webhook computes it, on this machine.

The one place where addresses are replaced. A workload goes through the same admission as in a
cluster; what the admitted pods carry is then taken as it is, except that each `host:port` of a task
becomes `127.0.0.1` and a free port, in every variable in which it occurs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import admission
import builders
from harness import loopback
from tfadmit_trainer import contract, encoding, pattern

Environment = dict[str, str]


def environments(
    *jobs: Any, attempt: int | None = None, **settings: Any
) -> dict[str, list[Environment]]:
    """The environment of each task by role, in the order of indexes."""
    jobset = builders.make_jobset(*jobs)
    pods = [admission.admit(pod, jobset, **settings) for pod in _pods(jobset, attempt)]
    found: dict[str, list[Environment]] = {}
    for env in map(admission.env, pods):
        found.setdefault(env["TF_TASK_TYPE"], []).append(env)
    everybody = found.get("evaluator", found.get("worker", []))[0]
    places = _places(everybody["TFADMIT_CLUSTER"])
    return {role: [_moved(env, places) for env in tasks] for role, tasks in found.items()}


def workers(count: int, **options: Any) -> list[Environment]:
    """The environments of a training of workers only."""
    return environments(builders.make_replicated_job(completions=count), **options)["worker"]


def parameter_servers(*, workers: int = 2) -> dict[str, list[Environment]]:
    """The environments of a training with chief, workers, one ps and an evaluator."""
    one = [builders.make_replicated_job(role, completions=1) for role in ("chief", "ps")]
    return environments(
        *one,
        builders.make_replicated_job("worker", completions=workers),
        builders.make_replicated_job("evaluator", completions=1),
    )


def _pods(jobset: Any, attempt: int | None) -> list[Any]:
    told = {} if attempt is None else {"jobset.sigs.k8s.io/restart-attempt": str(attempt)}
    return [
        builders.make_pod(job=job["name"], job_index=replica, index=index, annotations=told)
        for job in jobset["spec"]["replicatedJobs"]
        for replica in range(job["replicas"])
        for index in range(job["template"]["spec"]["completions"])
    ]


def _places(compact: str) -> dict[str, str]:
    cluster = encoding.decode(compact)
    return {
        address: f"127.0.0.1:{loopback.free_port()}"
        for role in contract.ROLES
        for address in pattern.expand(cluster.patterns(role))
    }


def _moved(env: Mapping[str, str], places: Mapping[str, str]) -> Environment:
    """The same environment elsewhere."""
    moved = dict(env)
    cluster = encoding.decode(env["TFADMIT_CLUSTER"])
    spelled = {
        role: [places[address] for address in pattern.expand(cluster.patterns(role))]
        for role in contract.ROLES
    }
    moved["TFADMIT_CLUSTER"] = json.dumps({"v": 1, **{r: a for r, a in spelled.items() if a}})
    own = spelled[_role(env)][int(env["TF_TASK_INDEX"])]
    moved["TF_WORKER_PORT"] = own.rpartition(":")[2]
    for name in ("TF_CONFIG", "TF_CHIEF_HOSTS", "TF_WORKER_HOSTS", "TF_PS_HOSTS"):
        for address, place in places.items():
            if name in moved:
                moved[name] = moved[name].replace(address, place)
    return moved


def _role(env: Mapping[str, str]) -> contract.Role:
    return next(role for role in contract.ROLES if role == env["TF_TASK_TYPE"])
