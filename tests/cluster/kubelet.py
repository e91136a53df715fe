"""A node for tests of logs: what a kubelet does, as far as the API server and controllers see it.

It serves `/containerLogs`, which the API server asks for `kubectl logs`; a test writes the lines,
starts and ends containers, and breaks connections. Pods that are being deleted are let go.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import http.server
import socket
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cluster import support
from harness import certificates
from harness.api import MERGE, ApiError
from harness.cluster import Cluster

_Key = tuple[str, str, int]
"""Pod, container, number of the run."""


def stamp(at: float, nanoseconds: int = 0) -> str:
    moment = dt.datetime.fromtimestamp(int(at), dt.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


class Log:
    """What a run of a container has printed."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, bytes]] = []
        self.ended = False
        self.breaks: list[int] = []
        """After how many bytes of an answer each of the next connections breaks."""


class Kubelet:
    """A node of one cluster, whose pods lie in one namespace."""

    def __init__(self, cluster: Cluster, *, namespace: str, name: str, directory: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name
        self.logs: dict[_Key, Log] = defaultdict(Log)
        self.asked: list[dict[str, str]] = []
        self._numbers: dict[str, int] = defaultdict(int)
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._clock = time.time()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        serving = certificates.serving_certificate(directory=directory, host="127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(serving.certificate, serving.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @contextlib.contextmanager
    def running(self) -> Iterator[Kubelet]:
        threads = [
            threading.Thread(target=self._server.serve_forever, daemon=True),
            threading.Thread(target=self._let_go, daemon=True),
        ]
        self._register()
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            with self._changed:
                self._changed.notify_all()
            self._server.shutdown()
            self._server.server_close()
            threads[1].join(timeout=10)
            self.cluster.delete("Node", self.name)

    # --- what a test lets happen ---

    def start(self, pod: support.Json, *, restarts: int = 0) -> support.Json:
        """Let all regular containers of a pod run, on this node."""
        if not pod["spec"].get("nodeName"):
            self.bind(pod)
        self._numbers[pod["metadata"]["name"]] = restarts
        self.status(pod, phase="Running", state={"running": {"startedAt": stamp(time.time())}},
                    restarts=restarts)  # fmt: skip
        return pod

    def say(self, pod: support.Json, *lines: str, container: str = "node") -> None:
        """Let a container print, each line a millisecond after the other."""
        log = self.log(pod, container)
        with self._changed:
            for line in lines:
                self._clock = max(self._clock + 0.001, time.time())
                log.lines.append((self._clock, line.encode()))
            self._changed.notify_all()

    def end(self, pod: support.Json, *, code: int, message: str = "", reason: str = "") -> None:
        """Let a pod's containers end; its logs stay while the pod is there."""
        word = reason or ("Completed" if code == 0 else "Error")
        state: support.Json = {"exitCode": code, "reason": word, "message": message,
                               "finishedAt": stamp(time.time())}  # fmt: skip
        with self._changed:
            for (name, _, _), log in self.logs.items():
                if name == pod["metadata"]["name"]:
                    log.ended = True
            self._changed.notify_all()
        self.status(pod, phase="Failed" if code else "Succeeded", state={"terminated": state})

    def status(
        self, pod: support.Json, *, phase: str, state: support.Json, restarts: int = 0
    ) -> None:
        """Report a state of all regular containers."""
        containers = [
            {
                "name": item["name"], "image": item["image"], "imageID": "",
                "ready": phase == "Running", "restartCount": restarts, "state": state,
            }
            for item in pod["spec"]["containers"]
        ]  # fmt: skip
        conditions = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
        patch(self.cluster, pod, {
            "phase": phase, "containerStatuses": containers, "conditions": conditions,
        })  # fmt: skip

    def bind(self, pod: support.Json, *, to: str = "") -> None:
        """Put a pod on this node, or on another one that need not exist."""
        metadata = pod["metadata"]
        path = self.cluster.api.resource("Pod").path(
            namespace=metadata["namespace"], name=metadata["name"]
        )
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": to or self.name},
        }
        self.cluster.api.request("POST", f"{path}/binding", body=binding)
        pod["spec"]["nodeName"] = to or self.name

    def log(self, pod: support.Json, container: str = "node") -> Log:
        """The log of a container's present run."""
        name = pod["metadata"]["name"]
        return self.logs[name, container, self._numbers[name]]

    # --- what the cluster sees ---

    def _register(self) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}}
        self.cluster.apply(node)
        port = self._server.server_address[1]
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        path = self.cluster.api.resource("Node").path(name=self.name)
        self.cluster.api.request(
            "PATCH", f"{path}/status", body={"status": status}, content_type=MERGE
        )

    def _let_go(self) -> None:
        """End pods that are being deleted, as their kubelet would."""
        while not self._over.wait(0.1):
            with contextlib.suppress(ApiError):
                for pod in self.cluster.list("Pod", self.namespace):
                    if "deletionTimestamp" in pod["metadata"]:
                        self._remove(pod)

    def _remove(self, pod: support.Json) -> None:
        name = pod["metadata"]["name"]
        with self._changed:
            for (owner, _, _), log in self.logs.items():
                if owner == name:
                    log.ended = True
            self._changed.notify_all()
        path = self.cluster.api.resource("Pod").path(namespace=self.namespace, name=name)
        with contextlib.suppress(ApiError):
            self.cluster.api.request("DELETE", path, query={"gracePeriodSeconds": "0"})

    def _handler(kubelet: Kubelet) -> Any:  # noqa: N805 - the handler has a `self` of its own
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                _, place, namespace, pod, container = url.path.split("/")
                assert (place, namespace) == ("containerLogs", kubelet.namespace)
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                kubelet.asked.append(query)
                number = kubelet._numbers[pod] - (query.get("previous") == "true")
                with contextlib.suppress(OSError):
                    kubelet._answer(self, kubelet.logs[pod, container, number], query)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the same
                pass

        return Handler

    def _answer(self, handler: Any, log: Log, query: dict[str, str]) -> None:
        room = log.breaks.pop(0) if log.breaks else None
        since = query.get("sinceTime")
        told = 0
        if "tailLines" in query:
            told = max(0, len(log.lines) - int(query["tailLines"]))
        while True:
            with self._changed:
                lines, ended = log.lines[told:], log.ended
            told += len(lines)
            for at, text in lines:
                whole, fraction = divmod(at, 1)
                if since and stamp(whole, int(fraction * 1e9)) < since:
                    continue
                head = f"{stamp(whole, int(fraction * 1e9))} ".encode()
                data = head + text + b"\n"
                if room is not None and len(data) > room:
                    self._send(handler, data[:room])
                    handler.close_connection = True
                    handler.connection.shutdown(socket.SHUT_RDWR)
                    return
                room = None if room is None else room - len(data)
                self._send(handler, data)
            if ended or query.get("follow") != "true" or self._over.is_set():
                handler.wfile.write(b"0\r\n\r\n")
                return
            with self._changed:
                self._changed.wait(0.2)

    @staticmethod
    def _send(handler: Any, data: bytes) -> None:
        handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        handler.wfile.flush()


def patch(cluster: Cluster, pod: support.Json, status: support.Json) -> None:
    """Report a status of a pod."""
    metadata = pod["metadata"]
    path = cluster.api.resource("Pod").path(namespace=metadata["namespace"], name=metadata["name"])
    cluster.api.request("PATCH", f"{path}/status", body={"status": status}, content_type=MERGE)
