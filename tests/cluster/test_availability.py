"""No call fails while certificates and servers are replaced: pods at a steady rate, all counted."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from cluster import availability, certs_support
from harness import load, replicas
from harness.cluster import Cluster
from tfadmit_certs import bundle, files, issue, san

pytestmark = pytest.mark.timeout(600)
Create = Callable[[int], availability.Json]
RELOADS = 6
LEAST = 3000
# More a second than there are threads to create them: all of those are always busy.
BEYOND = 2000.0
PROCESSES = 2  # of a server, by default
USED = r'tfadmit_certificate_reloads_total\{outcome="used"\}'
SETTINGS = """\
server: {drainSeconds: 3, drainQuietSeconds: 1, drainLimitSeconds: 20}
certificates: {settle: 3s}
"""


def issued(directory: Path) -> bytes:
    """A new leaf by the CA of the directory, made when missing; gives the CA's certificate."""
    delivery = files.fulfil(
        files.Order(names=san.check(ips=["127.0.0.1"]), lifetime=timedelta(days=1)),
        directory=directory,
        now=datetime.now(timezone.utc),
        entropy=issue.system_entropy(),
    )
    return delivery.ca_pem


class Mount:
    """A mounted Secret: its files are links through `..data`, which the kubelet replaces."""

    def __init__(self, directory: Path, source: Path) -> None:
        self.directory = directory
        self._source = source
        self._versions = itertools.count()
        directory.mkdir()
        self.renew()
        for name in ("tls.crt", "tls.key"):
            (directory / name).symlink_to(f"..data/{name}")

    def renew(self) -> None:
        version = self.directory / f"..version_{next(self._versions)}"
        version.mkdir()
        for name in ("tls.crt", "tls.key"):
            (version / name).write_bytes((self._source / name).read_bytes())
        (self.directory / "..data_tmp").symlink_to(version.name)
        (self.directory / "..data_tmp").replace(self.directory / "..data")


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Short times, so that a whole rotation and nine restarts fit into a test."""
    file = tmp_path / "settings.yaml"
    file.write_text(SETTINGS)
    return file


@contextmanager
def serving(
    cluster: Cluster, settings: Path, arguments: list[str | Path], *, count: int = 3
) -> Iterator[replicas.Replicas]:
    common: list[str | Path] = ["--config", settings, "--kubeconfig", cluster.kubeconfig]
    with replicas.running(
        directory=settings.parent / "servers", arguments=[*common, *arguments], count=count
    ) as servers:
        yield servers


@contextmanager
def called(
    cluster: Cluster,
    namespace: str,
    servers: replicas.Replicas,
    *,
    ca: bytes | None,
    padding: int = 0,
) -> Iterator[Create]:
    """The servers as the webhook of the namespace; gives what creates a pod that they admit."""
    manifests = availability.configurations(
        cluster, name=f"tfadmit-{namespace}", namespace=namespace, url=servers.url
    )
    with availability.applied(cluster, manifests, ca=ca):
        create = availability.pod_maker(cluster, namespace, padding=padding)
        availability.wait_until_called(cluster, create)
        yield create


def from_files(directory: Path) -> list[str | Path]:
    return ["--tls-cert", directory / "tls.crt", "--tls-key", directory / "tls.key"]


@pytest.mark.parametrize("mounted", [False, True], ids=["files", "a mounted secret"])
def test_a_renewed_certificate_in_files_fails_no_call(
    cluster, namespace, tmp_path, settings, capsys, mounted
):
    source = tmp_path / "issued"
    ca = issued(source)
    mount = Mount(tmp_path / "mount", source)
    identity = from_files(mount.directory if mounted else source)
    with (
        serving(cluster, settings, identity) as servers,
        called(cluster, namespace, servers, ca=ca) as create,
    ):
        with load.Load(create, rate=availability.RATE).running() as report:
            for _ in range(RELOADS):
                time.sleep(4.5)
                issued(source)
                mount.renew()
            time.sleep(4)
            availability.wait_until_made(cluster, report, LEAST)
        availability.show(capsys, f"{RELOADS} renewed certificates", report)
        used = servers.metric(USED)
    availability.assert_none_failed(report, least=LEAST)
    assert used >= 3 * RELOADS


def test_three_rolling_restarts_fail_no_call(cluster, namespace, tmp_path, settings, capsys):
    ca = issued(tmp_path / "issued")
    with (
        serving(cluster, settings, from_files(tmp_path / "issued")) as servers,
        called(cluster, namespace, servers, ca=ca) as create,
    ):
        with load.Load(create, rate=availability.RATE).running() as report:
            rolls = 0
            # A slow machine makes fewer pods meanwhile: it restarts the servers more often.
            while rolls < 3 or (len(report.outcomes) < 5000 and not report.failures):
                servers.roll()
                rolls += 1
        availability.show(capsys, f"{rolls} rolling restarts of 3 servers", report)
    availability.assert_none_failed(report, least=5000)


@pytest.fixture
def installation(cluster, namespace, settings):
    made = UrlInstallation(cluster, namespace, settings=settings.read_text())
    yield made
    made.close()


def test_pods_beyond_the_capacity_of_a_server_succeed_by_the_api_servers_retry(
    cluster, namespace, tmp_path, settings, capsys
):
    """Sent away with 503 and Retry-After, a review comes again within the time of its call."""
    ca = issued(tmp_path / "issued")
    settings.write_text("server: {processes: 1, threads: 1, maxInFlight: 1}\n")
    identity = from_files(tmp_path / "issued")
    with (
        serving(cluster, settings, identity, count=1) as servers,
        called(cluster, namespace, servers, ca=ca, padding=100_000) as create,
    ):
        with load.Load(create, rate=BEYOND).running() as report:
            time.sleep(10)
        shed = servers.metric(r"tfadmit_shed_total")
        availability.show(capsys, f"one server and {shed:.0f} reviews sent away", report)
    availability.assert_none_failed(report, least=100)
    assert shed > 0


class UrlInstallation(certs_support.Installation):
    """Certificates for servers that are called by an address of this machine."""

    def called_at(self, url: str) -> None:
        self.names = dataclasses.replace(self.names, url=url)

    def options(self) -> list[str]:
        return [*super().options(), "--url", self.names.url]

    def identity(self) -> list[str | Path]:
        return [
            *("--tls-secret", f"{self.namespace}/{self.names.secret('leaf')}"),
            *("--webhook-configuration", self.names.configuration),
        ]


def test_a_full_rotation_of_ca_and_leaf_fails_no_call(
    cluster, namespace, settings, installation, capsys
):
    with serving(cluster, settings, installation.identity()) as servers:
        installation.called_at(servers.url)
        installation.start()
        with called(cluster, namespace, servers, ca=None) as create:
            before, reloads = authorities(installation), servers.metric(USED)
            with load.Load(create, rate=availability.RATE).running() as report:
                time.sleep(3)
                rotated = installation.run("rotate", "--ca")
                assert rotated.returncode == 0, rotated.stderr
                cluster.wait(
                    lambda: servers.metric(USED) - reloads,
                    until=lambda count: count == PROCESSES * len(servers.servers),
                    what="all processes show the new leaf",
                )
                retire(installation)
                cluster.wait(
                    lambda: authorities(installation),
                    until=lambda found: len(found) == 1 and found != before,
                    what="the old CA has left the caBundle",
                )
                availability.wait_until_made(cluster, report, len(report.outcomes) + LEAST)
            availability.show(capsys, "a rotation of CA and leaf, until the old CA left", report)
    availability.assert_none_failed(report, least=LEAST)


def retire(installation: UrlInstallation) -> None:
    """Let the week pass after which no leaf of the old CA can be alive: no server has one here."""
    secret, past = installation.names.secret("ca"), "tfadmit.dev/retired-until=2026-01-01T00:00:00Z"
    options = ["--namespace", installation.namespace, "--overwrite"]
    installation.cluster.kubectl("annotate", "secret", secret, past, *options)


def authorities(installation: UrlInstallation) -> frozenset[str]:
    """Every CA that a webhook of ours trusts, by its fingerprint."""
    hooks = [hook for item in installation.configurations() for hook in item.hooks]
    pems = [hook.trusts or b"" for hook in hooks]
    return frozenset(bundle.fingerprint(item) for pem in pems for item in bundle.parse(pem))
