"""From arguments to a plan of what to run, or to all that is wrong with them at once.

Here: reading the files that are named, and choosing where look-ups are answered. Nothing is started
and no port is taken.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfadmit_connect import place
from tfadmit_connect.fault import ConnectError
from tfadmit_webhook import (
    identity,
    identity_files,
    objects_file,
    policy,
    server,
    settings_file,
    tls,
    trust,
)
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Settings

if TYPE_CHECKING:
    from tfadmit_webhook.kube import api

SourceFactory = Callable[[Observer], server.Source]
CertificateFactory = Callable[[identity.Keeper], server.Certificate]


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line, read."""

    config: Path | None
    host: str
    port: int
    metrics_port: int | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_secret: tuple[str, str] | None
    """Namespace and name, in place of the two files."""

    client_ca: Path | None
    client_names: tuple[str, ...]
    webhook_configuration: str | None
    in_cluster: bool
    kubeconfig: Path | None
    objects: tuple[Path, ...]
    """Manifests to look up in; in place of the two ways to a cluster."""


def make(arguments: Arguments) -> server.Plan | list[str]:
    """Plan the server, or give one line for every fault."""
    faults = _usage_faults(arguments)
    settings = _settings(arguments.config, faults)
    clients = _clients(arguments, faults)
    asked = _server(arguments, settings or Settings(), faults)
    source = _source(arguments, asked, faults)
    certificate = _certificate(arguments, asked, clients, faults)
    if faults or settings is None or source is None or certificate is None:
        return faults
    return server.Plan(
        settings=settings,
        certificate=certificate,
        source=source,
        host=arguments.host,
        port=arguments.port,
        metrics_port=arguments.metrics_port,
        clients=clients,
        configuration=arguments.webhook_configuration or "",
        configurations=_configurations(arguments.webhook_configuration, asked),
    )


def _usage_faults(arguments: Arguments) -> list[str]:
    """Say which options do not go together."""
    faults = []
    files = (arguments.tls_cert, arguments.tls_key)
    if arguments.tls_secret and any(files):
        faults.append("--tls-secret stands in place of --tls-cert and --tls-key: leave these out")
    elif not arguments.tls_secret and not all(files):
        faults.append("a certificate is missing: --tls-cert and --tls-key, or --tls-secret")
    if arguments.objects:
        faults += [
            f"{option} is asked of a cluster: give --in-cluster or --kubeconfig, not --objects"
            for option, value in (
                ("--tls-secret", arguments.tls_secret),
                ("--webhook-configuration", arguments.webhook_configuration),
            )
            if value
        ]
    if arguments.client_names and not arguments.client_ca:
        faults.append("--client-name says nothing without --client-ca")
    return faults


def _settings(path: Path | None, faults: list[str]) -> Settings | None:
    if path is None:
        return Settings()
    text = _text("--config", path, faults)
    if text is None:
        return None
    settings = settings_file.load(text, rules=policy.ids())
    if isinstance(settings, list):
        faults += [f"--config {path}: {fault}" for fault in settings]
        return None
    return settings


def _clients(arguments: Arguments, faults: list[str]) -> server.Clients | None:
    if arguments.client_ca is None:
        return None
    file = identity_files.ClientCa(path=arguments.client_ca)
    try:
        content = file.read()
        tls.check_authorities(content)
    except tls.TlsFault as error:
        faults.append(str(error))
        return None
    return server.Clients(ca=content, look=file.look, names=arguments.client_names)


def _certificate(
    arguments: Arguments,
    server: "api.Api | None",
    clients: server.Clients | None,
    faults: list[str],
) -> CertificateFactory | None:
    if arguments.tls_secret:
        return _from_secret(*arguments.tls_secret, server=server) if server else None
    if not arguments.tls_cert or not arguments.tls_key:
        return None
    files = identity_files.Pair(certificate=arguments.tls_cert, key=arguments.tls_key)
    try:
        offer = files.read()
    except tls.TlsFault as error:
        faults.append(str(error))
        return None
    if fault := identity.check(offer, client_ca=clients.ca if clients else b""):
        faults.append(fault)
        return None
    return functools.partial(identity_files.Follower, files)


def _from_secret(namespace: str, name: str, *, server: "api.Api") -> CertificateFactory:
    from tfadmit_webhook import identity_secret  # noqa: PLC0415 - loads the client

    return lambda keeper: identity_secret.Pair(
        server, namespace=namespace, name=name, keeper=keeper
    )


def _server(arguments: Arguments, settings: Settings, faults: list[str]) -> "api.Api | None":
    if not arguments.in_cluster and not arguments.kubeconfig:
        return None
    # Here and not above, because the client takes half a second and manifests need none.
    from tfadmit_connect import connection  # noqa: PLC0415
    from tfadmit_webhook.kube import api  # noqa: PLC0415

    # Every review may look up; two watches, their lists and the configurations come on top.
    connections = settings.server.threads + 5
    try:
        if arguments.kubeconfig:
            where = place.Place(kubeconfig=str(arguments.kubeconfig))
            found = connection.to(where, connections=connections)
        else:
            found = connection.in_pod(connections=connections)
    except ConnectError as error:
        faults.append(str(error))
        return None
    return api.Api(found.api_client)


def _source(
    arguments: Arguments, server: "api.Api | None", faults: list[str]
) -> SourceFactory | None:
    if arguments.objects:
        return _objects(arguments.objects, faults)
    if server is None:
        return None
    from tfadmit_webhook.kube import reader  # noqa: PLC0415 - as above

    return lambda observer: reader.Cluster(server, monitor=observer)


def _configurations(
    name: str | None, server: "api.Api | None"
) -> Callable[[Callable[[trust.Found], bool]], server.Runner] | None:
    if not name or not server:
        return None
    from tfadmit_webhook.kube import configurations  # noqa: PLC0415 - as above

    return lambda take: configurations.Configurations(server, name=name, take=take)


def _objects(paths: Sequence[Path], faults: list[str]) -> SourceFactory | None:
    texts = [(path, _text("--objects", path, faults)) for path in paths]
    found = [(path, objects_file.load(text)) for path, text in texts if text is not None]
    wrong = [f"--objects {path}: {item}" for path, item in found if isinstance(item, str)]
    faults += wrong
    if wrong or len(found) < len(paths):
        return None
    contents = [item for _, item in found if not isinstance(item, str)]
    workloads = [work for item in contents for work in item.workloads]
    runtimes = [runtime for item in contents for runtime in item.runtimes]
    namespaces = {name: labels for item in contents for name, labels in item.namespaces.items()}
    return lambda _observer: objects_file.Objects(
        workloads, runtimes=runtimes, namespaces=namespaces
    )


def _text(option: str, path: Path, faults: list[str]) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        faults.append(f"{option} {path}: {error.strerror or error}")
    except UnicodeDecodeError:
        faults.append(f"{option} {path}: is no UTF-8 text")
    return None
