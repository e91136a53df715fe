"""The command `tfadmit demo`: the whole webhook in a few seconds, without a cluster.

Here: the order of the demonstration and printing. The server is the real one, a child process
(`demo.server`); the reviews go over TLS (`demo.review`); the words stand in `demo.text`.
"""

import argparse
import dataclasses
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tfadmit_client import fault
from tfadmit_client.demo import examples, review, server
from tfadmit_client.demo import text as demo_text
from tfadmit_client.demo.review import Answer, Connection
from tfadmit_client.expand import expansion, job
from tfadmit_client.files import manifest
from tfadmit_webhook import raw

_NAMESPACE = "default"
_INFINIBAND_NAME = "tf-infiniband"
_RESOURCE = "nvidia.com/hostdev"
# Who creates these objects in a cluster; the webhook logs it and decides nothing by it.
_JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
_PERSON = "platform-team"


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit demo") -> int:
    """Run the command."""
    _parser(prog).parse_args(argv)
    scene = _Scene()
    with tempfile.TemporaryDirectory(prefix="tfadmit-demo-") as name:
        directory = Path(name)
        server.issue_certificates(directory)
        with server.running(_serve_arguments(directory, scene)) as address:
            authority = directory / "ca.crt"
            with review.connected(address, authority=authority) as connection:
                _tell(_Stage(connection=connection), scene, address=address)
    return 0


class _Scene:
    """The example objects, expanded as the controllers do."""

    def __init__(self) -> None:
        self.runtime = _read(examples.RUNTIME)
        self.infiniband = _read(examples.INFINIBAND)
        self.refused = _read(examples.REFUSED)
        trainjob = _read(examples.TRAINJOB)
        self.source = _expand(trainjob, self.runtime)
        self.on_infiniband = _expand(_renamed(trainjob, self.infiniband), self.infiniband)


@dataclass(kw_only=True)
class _Stage:
    """The connection, and what came back so far."""

    connection: Connection
    answers: list[Answer] = field(default_factory=list)

    def send(
        self, path: str, content: raw.JsonObject, *, user: str, allowed: bool = True
    ) -> Answer:
        """Send an object; another verdict than the story has would make the story untrue."""
        answer = self.connection.send(path, content, user=user)
        if answer.allowed is not allowed:
            verdict = "allowed" if answer.allowed else f"refused: {answer.message}"
            name = raw.at(content, ("metadata", "name")) or raw.at(content, ("spec", "hostname"))
            raise fault.ClientError(f"the example {name} was unexpectedly {verdict}")
        self.answers.append(answer)
        return answer


def _tell(stage: _Stage, scene: _Scene, *, address: str) -> None:
    print("tfadmit tells every TensorFlow pod its role, its index, its peers and its network.")
    _heading("1  The server")
    _say(
        [
            f"`tfadmit serve` listens on {address}, certificates by `tfadmit certs issue`.",
            "It is sent what a cluster's API server would send; what follows are its own answers.",
        ]
    )
    _heading(f"2  A runtime for TensorFlow: {examples.shown(examples.RUNTIME)}")
    _say(demo_text.runtime(_accept(stage, scene.runtime.content)))
    _tell_trainjob(stage, scene)
    _tell_infiniband(stage, scene)
    _heading(f"5  A runtime that could not train: {examples.shown(examples.REFUSED)}")
    content = scene.refused.content
    refused = stage.send("/validate/runtimes", content, user=_PERSON, allowed=False)
    _say(demo_text.refusal(refused, path=examples.shown(examples.REFUSED)))
    print(f"\n{demo_text.round_trips(stage.answers)}.")
    _heading("Next")
    _say(
        demo_text.next_steps(
            command=_command(),
            runtime_path=examples.shown(examples.RUNTIME),
            trainjob_path=examples.shown(examples.TRAINJOB),
        )
    )


def _accept(stage: _Stage, runtime: raw.JsonObject) -> Answer:
    """Send a runtime to both hooks, in the API server's order; give the answer of the first."""
    changed = stage.send("/mutate/runtimes", runtime, user=_PERSON)
    stage.send("/validate/runtimes", changed.result, user=_PERSON)
    return changed


def _tell_trainjob(stage: _Stage, scene: _Scene) -> None:
    _heading(f"3  A TrainJob on it: {examples.shown(examples.TRAINJOB)}")
    text = examples.path(examples.TRAINJOB).read_text(encoding="utf-8")
    _say(demo_text.without_comments(text))
    answers = _send_pods(stage, scene.source)
    print(
        f"\n   Trainer and JobSet make {len(answers)} pods of it, all from one template. "
        "What the webhook adds to each:\n"
    )
    first, *others = answers
    _say(demo_text.pod(first))
    _say(demo_text.other_pod(answer, first) for answer in others)


def _tell_infiniband(stage: _Stage, scene: _Scene) -> None:
    _heading(f"4  The same on InfiniBand: {examples.shown(examples.INFINIBAND)}")
    _accept(stage, scene.infiniband.content)
    first = _send_pods(stage, scene.on_infiniband)[0]
    _say(demo_text.network(first, resource=_RESOURCE))


def _send_pods(stage: _Stage, source: expansion.Source) -> list[Answer]:
    pods = [pod for item in source.jobs() for pod in job.pods(item)]
    return [stage.send("/mutate/pods", pod, user=_JOB_CONTROLLER) for pod in pods]


def _serve_arguments(directory: Path, scene: _Scene) -> list[str]:
    """Give the arguments of the server; it looks up JobSets in a file instead of a cluster."""
    objects = [scene.source.jobset, scene.on_infiniband.jobset]
    path = directory / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return [
        *("--host", "127.0.0.1", "--port", "0", "--no-metrics"),
        *("--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key")),
        *("--objects", str(path)),
    ]


def _read(name: str) -> manifest.Manifest:
    return manifest.read([str(examples.path(name))], namespace=_NAMESPACE)[0]


def _expand(trainjob: manifest.Manifest, runtime: manifest.Manifest) -> expansion.Source:
    labelled = expansion.labelled(runtime.content)
    return expansion.source(trainjob, {expansion.key(runtime): labelled})


def _command() -> str:
    """Give the command as a newcomer can type it: `make` leaves it out of PATH."""
    if shutil.which("tfadmit"):
        return "tfadmit"
    script = Path(sys.executable).with_name("tfadmit")
    return os.path.relpath(script) if script.exists() else f"{sys.executable} -m tfadmit_client"


def _renamed(trainjob: manifest.Manifest, runtime: manifest.Manifest) -> manifest.Manifest:
    """Give the TrainJob under another name on another runtime."""
    content = trainjob.content
    changed = {
        **content,
        "metadata": {**content["metadata"], "name": _INFINIBAND_NAME},
        "spec": {**content["spec"], "runtimeRef": {"name": runtime.name}},
    }
    return dataclasses.replace(trainjob, content=changed, default_namespace=_NAMESPACE)


def _heading(text: str) -> None:
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(f"\n\033[1m{text}\033[0m" if bold else f"\n{text}")


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"   {line}")


def _parser(prog: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=prog,
        description="Start the real server on loopback with fresh certificates, send it the "
        "examples as a cluster would, and explain what comes back. Takes a few seconds, needs no "
        "cluster, leaves nothing behind.",
    )
