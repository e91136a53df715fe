"""What the runtime tensorflow-ps runs where a TrainJob brings no program, with a plain chief."""

from pathlib import Path

import yaml

from training import loopback_pods, tasks

RUNTIME = tasks.ROOT / "deploy/runtimes/tensorflow-ps.yaml"
CHIEF = [str(Path(__file__).parent / "scripts" / "plain_chief.py")]


def program():
    jobs = yaml.safe_load(RUNTIME.read_text())["spec"]["template"]["spec"]["replicatedJobs"]
    (job,) = [job for job in jobs if job["name"] == "node"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    python, *words = container["command"]
    assert python == "python"
    return words


def test_the_shipped_servers_serve_a_chief_until_they_are_ended(start):
    environments = loopback_pods.parameter_servers(workers=2)
    servers = [
        start(f"{role}-{index}", program(), env=env)
        for role in ("worker", "ps")
        for index, env in enumerate(environments[role])
    ]
    chief = start("chief", CHIEF, env=environments["chief"][0])
    assert chief.wait(timeout=120) == 0, chief.tail()
    assert "steps taken on /job:ps/replica:0/task:0" in chief.text
    # As in the cluster: nothing of them ends by itself, and JobSet deletes them.
    assert [server.code for server in servers] == [None] * len(servers)
