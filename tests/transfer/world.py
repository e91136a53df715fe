"""A training pod without Kubernetes: its workspace, its environment, its programs as processes."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from harness import google_store, object_store
from tfadmit_transfer import cli, options, results, retry, status, store, stores, uri


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pod:
    """One pod; `again` is the one that takes its place."""

    server: object_store.ObjectStore
    front: object_store.ObjectStore | google_store.GoogleStore
    """Whom it asks; the objects lie in the server."""
    scheme: str
    bucket: str
    root: pathlib.Path
    attempt: int = 0
    run: str = "uid-1"
    role: str = "chief"
    index: int = 0
    saves: bool = True
    port: int | None = None
    data: str = ""
    save_timeout: int = 600

    @property
    def address(self) -> str:
        """The whole bucket."""
        return f"{self.scheme}://{self.bucket}"

    @property
    def base(self) -> str:
        return f"{self.address}/results"

    @property
    def environ(self) -> dict[str, str]:
        return {
            **self.front.environ(port=self.port),
            "TFADMIT_WORKSPACE": str(self.root),
            "TFADMIT_JOB": "mnist",
            "TFADMIT_RUN": self.run,
            "TFADMIT_ATTEMPT": str(self.attempt),
            "TF_TASK_TYPE": self.role,
            "TF_TASK_INDEX": str(self.index),
            "TFADMIT_SAVES": "true" if self.saves else "false",
            "TFADMIT_OUTPUT_URI": f"{self.base}/mnist",
            "TFADMIT_FETCH": self.data,
            "TFADMIT_SAVE_TIMEOUT": str(self.save_timeout),
        }

    def again(self, root: pathlib.Path, **changes: Any) -> Pod:
        return dataclasses.replace(self, root=root, attempt=self.attempt + 1, **changes)

    def write(self, path: str, content: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def end(self, code: int = 0) -> None:
        """What the launcher does when the program has ended."""
        ended = {"version": 1, "attempt": self.attempt, "code": code, "signal": None}
        self.write(".tfadmit/.ended", json.dumps(ended).encode())
        (self.root / ".tfadmit/.ended").replace(self.root / ".tfadmit/ended.json")

    def fetch(self, patience: retry.Patience | None = None) -> int:
        """Run the init container in this process."""
        return cli.main(["fetch"], environ=self.environ, patience=patience)

    @contextlib.contextmanager
    def syncing(self) -> Iterator[subprocess.Popen[str]]:
        """The sidecar, ended by SIGTERM when the test is done with it."""
        self.write(".tfadmit/.started", b"")
        process = start("sync", self.environ)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
            print(said)

    def saved(self, *, within: float = 60) -> Mapping[str, Any]:
        """Wait for `saved.json`, as the launcher does."""
        path = self.root / ".tfadmit/saved.json"
        wait_for(path.exists, within=within)
        answer: Mapping[str, Any] = json.loads(path.read_bytes())
        return answer

    def store(self) -> store.Store:
        """The job's objects, asked without any fault in between."""
        environ = {**self.environ, **self.front.environ()}
        found = stores.of_job(options.read(environ), environ)
        assert found
        return found

    def status(self) -> status.Status | None:
        return results.read(self.store())

    def names(self) -> list[str]:
        """The objects of the job, without its prefix."""
        found = sorted(self.server.objects(self.bucket))
        return [key.removeprefix("results/mnist/") for key in found]

    def content(self, key: str) -> bytes:
        return self.server.objects(self.bucket)[f"results/mnist/{key}"]

    def put(self, key: str, content: bytes) -> str:
        """Put an object into the bucket; its address."""
        at = store.open_store(uri.parse(f"s3://{self.bucket}"), environ=self.server.environ())
        at.upload(key, iter([content]), size=len(content))
        return f"{self.address}/{key}"


def start(program: str, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tfadmit_transfer", program],
        env={**os.environ, **environ},
        stderr=subprocess.PIPE,
        text=True,
    )


def launch(pod: Pod, *argv: str, save_timeout: str = "60") -> subprocess.Popen[str]:
    """The training container of a pod that the webhook has admitted."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "TFADMIT_"))
    }
    environ |= {
        "TFADMIT_WORKSPACE": str(pod.root),
        "TFADMIT_JOB": "mnist",
        "TFADMIT_INPUTS": pod.data.partition("=")[0],
        "TFADMIT_OUTPUT_URI": f"{pod.base}/mnist",
        "TFADMIT_SAVE_TIMEOUT": save_timeout,
        "TF_TASK_TYPE": "chief",
        "TF_TASK_INDEX": "0",
        "TFADMIT_CLUSTER": '{"v":1,"chief":["localhost:12345"]}',
        "TFADMIT_ATTEMPT": str(pod.attempt),
        "TFADMIT_TERMINATION_LOG": str(pod.root / "termination-log"),
    }
    command = [sys.executable, "-m", "tfadmit_trainer.launcher", "--", *argv]
    return subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def wait_for(condition: Any, *, within: float = 30) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def hasty(say: Any = print, limit: float = 5.0) -> retry.Patience:
    """Tries as usual, without the waiting."""
    return retry.Patience(limit=limit, sleep=lambda _: None, say=say)


def assert_whole(pod: Pod, section: Any) -> dict[str, bytes]:
    """The files of a manifest, each as it says."""
    found = {}
    for path, entry in section.entries.items():
        content = pod.content(entry.key)
        assert len(content) == entry.size
        assert hashlib.sha256(content).hexdigest() == entry.sha256
        found[path] = content
    return found
