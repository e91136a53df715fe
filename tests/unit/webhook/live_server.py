"""The real server as a process of its own, and clients that speak to it over TLS."""

import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone
from typing import Any

import yaml

import builders
from tfadmit_certs import files, issue, san

# A test that ends a server does not want to see it drain.
HURRIED = {"drainSeconds": 0, "drainQuietSeconds": 0, "processes": 1}
PATIENT = {"drainSeconds": 10, "drainQuietSeconds": 5, "processes": 1}


def certificates(directory):
    """Let the shipped issuer make ca.crt, tls.crt and tls.key for the loopback address."""
    order = files.Order(names=san.check(ips=["127.0.0.1"], dns=["localhost"]))
    now = datetime.now(timezone.utc)
    files.fulfil(order, directory=directory, now=now, entropy=issue.system_entropy())
    return directory


class LiveServer:
    """`python -m tfadmit_webhook` on free ports. All that it logs must be JSON."""

    def __init__(
        self,
        directory,
        *,
        objects=(),
        source=(),
        settings=None,
        options=(),
        identity=None,
        waits=True,
        environment=None,
    ):
        """Args: `identity` is the options of the certificate; `waits` for reviews to be taken."""
        self.directory = directory
        (directory / "objects.yaml").write_text(yaml.safe_dump_all(objects))
        values = {"server": {**HURRIED, **(settings or {}).get("server", {})}}
        (directory / "settings.yaml").write_text(yaml.safe_dump({**(settings or {}), **values}))
        files = ("--tls-cert", directory / "tls.crt", "--tls-key", directory / "tls.key")
        command = [
            *(sys.executable, "-m", "tfadmit_webhook", "--host", "127.0.0.1", "--port", "0"),
            *(files if identity is None else identity),
            *("--metrics-port", "0", "--config", directory / "settings.yaml"),
            *(source or ("--objects", directory / "objects.yaml")),
            *options,
        ]
        environ = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ)
        assert self.process.stderr
        self._output = self.process.stderr
        self.lines: list[dict[str, Any]] = []
        self._addresses: dict[str, str] = {}
        self._up = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.wait_for_metrics()
        self.trust = ssl.create_default_context(cafile=directory / "ca.crt")
        if waits:
            assert self._up.wait(30), self.lines

    def wait_for_metrics(self):
        end = time.monotonic() + 30
        while "metrics" not in self._addresses:
            assert time.monotonic() < end, self.lines
            assert self.process.poll() is None, self.lines
            time.sleep(0.01)

    @property
    def metrics(self):
        return self._addresses["metrics"]

    @property
    def port(self):
        assert self._up.wait(30), self.lines
        return int(self._addresses["webhook"].rpartition(":")[2])

    def plain(self, path):
        """Ask the plain port: status and text."""
        host, port = self.metrics.split("/")[2].split(":")
        return ask(http.client.HTTPConnection(host, int(port), timeout=10), "GET", path)[::2]

    def metric(self, name):
        """The value of one series, as the page has it; None when there is none."""
        found = re.search(rf"^{re.escape(name)} (.+)$", self.plain("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else None

    def _read(self):
        for line in self._output:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == "listening":
                self._addresses[self.lines[-1]["what"]] = self.lines[-1]["address"]
                if self.lines[-1]["what"] == "webhook":
                    self._up.set()
        self._up.set()

    def events(self, name):
        return [line for line in self.lines if line["event"] == name]

    def event(self, name, **fields):
        """Wait for a line of this event with these fields: lines are written in batches."""
        end = time.monotonic() + 30
        while True:
            for line in self.events(name):
                if fields.items() <= line.items():
                    return line
            assert time.monotonic() < end, self.lines
            time.sleep(0.01)

    def connect(self, *, timeout=10):
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.trust, timeout=timeout
        )

    def socket(self, *, tls=True, timeout=10):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        return self.trust.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain

    def get(self, path):
        return ask(self.connect(), "GET", path)

    def review(self, content=None, *, path="/mutate/pods?timeout=10s", **request):
        body = builders.body(builders.make_review(content or builders.make_pod(), **request))
        status, _, text = ask(self.connect(), "POST", path, body)
        assert status == 200, text
        return json.loads(text)["response"]

    @contextlib.contextmanager
    def stopped_at_the_end(self):
        """Leave no process behind when a test fails."""
        try:
            yield
        finally:
            if self.process.returncode is None:
                self.process.kill()
                self.finish()

    def terminate(self):
        self.process.terminate()
        return self.finish()

    def finish(self, *, timeout=15):
        code = self.process.wait(timeout)
        self._reader.join()
        self._output.close()
        return code


def ask(connection, method, path, body=None, **headers):
    """Send one request on a connection of its own: status, headers, text."""
    kind = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, path, body, kind | headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()
