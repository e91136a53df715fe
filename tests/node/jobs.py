"""Jobs of `tfadmit run` on nodes: a folder of code, a store for results, a user's commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness import object_store
from harness.cluster import Cluster, load
from harness.node import deploy, images
from node import support

NAME = "mnist"
RUNTIME = "mine"
_SECRET = "store"
# A test does not wait for two minutes until a pod that ignores SIGTERM is gone.
_GRACE_SECONDS = 20


class User:
    """Somebody with a folder, a kubeconfig, and a runtime whose results go to a store."""

    def __init__(
        self, cluster: Cluster, *, namespace: str, store: object_store.ObjectStore, folder: Path
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._store = store
        self.bucket = store.bucket()
        self.folder = folder
        folder.mkdir()

    @property
    def base(self) -> str:
        """Where results go."""
        return f"s3://{self.bucket}/results"

    def may_store(self, **credentials: str) -> None:
        """Apply the runtime, and the Secret that it names, with other credentials if given."""
        (runtime,) = load(deploy.RUNTIME)
        runtime["kind"] = "TrainingRuntime"
        runtime["metadata"] |= {
            "name": RUNTIME,
            "namespace": self._namespace,
            "annotations": {
                "tfadmit.dev/default-output": self.base,
                "tfadmit.dev/default-store-secret": _SECRET,
            },
        }
        (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        pod = job["template"]["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = _GRACE_SECONDS
        self._cluster.apply(runtime)
        self._cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": _SECRET, "namespace": self._namespace},
                "stringData": {**self._store.environ(), **credentials},
            }
        )

    def write(self, name: str, content: str | bytes, *, mode: int = 0o644) -> None:
        """Put a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    def runs(
        self, *argv: str, image: str = images.WEBHOOK.name, options: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """Begin `tfadmit run`, which follows the job."""
        where = ("--kubeconfig", str(self._cluster.kubeconfig), "-n", self._namespace)
        words = ("run", *where, "--name", NAME, "--runtime", RUNTIME, "--image", image, *options)
        return subprocess.Popen(
            [str(deploy.PROGRAM), *words, "--", *argv],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def command(self, *words: str, code: int = 0, environ: Mapping[str, str] | None = None) -> str:
        """What another command prints that ends with a code."""
        where = ("--kubeconfig", str(self._cluster.kubeconfig), "-n", self._namespace)
        done = subprocess.run(
            [str(deploy.PROGRAM), *words, *where],
            cwd=self.folder.parent,
            env={**os.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def says(self, text: str, *, seconds: float = 120) -> None:
        """Wait until the newest pod of worker 0 prints a text."""
        self._cluster.wait(
            self._log,
            until=lambda log: text in log,
            timeout=seconds,
            pause=0.3,
            what=f"worker 0 says {text!r}",
        )

    def pod(self) -> support.Json:
        """The newest pod of worker 0."""
        name = support.worker(self._cluster, self._namespace, NAME, 0)
        return dict(self._cluster.get("Pod", name, self._namespace))

    def restarts(self) -> tuple[int, int]:
        """How often all tasks were started again, and how often of these it was counted."""
        return support.restarts(self._cluster, self._namespace, NAME)

    def saved(self) -> Mapping[str, bytes]:
        """What lies in the store for the job, by name."""
        prefix = f"results/{NAME}/"
        found = self._store.objects(self.bucket)
        return {key.removeprefix(prefix): data for key, data in found.items()}

    def _log(self) -> str:
        pods = self._cluster.list("Pod", self._namespace)
        if not pods:
            return ""
        name = self.pod()["metadata"]["name"]
        shown = self._cluster.kubectl(
            "logs", name, "-n", self._namespace, "-c", "node", check=False
        )
        return shown.stdout


def ends(process: subprocess.Popen[str], *, code: int, seconds: float = 300) -> str:
    """Wait for a command; what it printed."""
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, _ = process.communicate()
        raise AssertionError(f"still going after {seconds:.0f} s:\n{printed}") from None
    assert process.returncode == code, printed
    return printed
