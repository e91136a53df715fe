"""From arguments to a plan of what to run, or to all that is wrong with them at once.

Here: reading the files that are named, and choosing where look-ups are answered. Nothing is started
and no port is taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfadmit_webhook import objects_file, policy, serve, settings_file, tls
from tfadmit_webhook.observe import Observer
from tfadmit_webhook.settings import Settings

SourceFactory = Callable[[Observer], serve.Source]


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line, read."""

    config: Path | None
    tls_cert: Path
    tls_key: Path
    host: str
    port: int
    metrics_port: int | None
    kubeconfig: Path | None
    objects: tuple[Path, ...]
    """Manifests to look up in; with neither these nor a kubeconfig, the pod's service account."""


def make(arguments: Arguments) -> serve.Plan | list[str]:
    """Plan the server, or give one line for every fault."""
    faults: list[str] = []
    settings = _settings(arguments.config, faults)
    certificate = tls.Files(certificate=arguments.tls_cert, key=arguments.tls_key)
    identity = _identity(certificate, faults)
    source = _source(arguments, settings or Settings(), faults)
    if settings is None or identity is None or source is None:
        return faults
    return serve.Plan(
        settings=settings,
        identity=identity,
        certificate=certificate,
        source=source,
        host=arguments.host,
        port=arguments.port,
        metrics_port=arguments.metrics_port,
    )


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


def _identity(certificate: tls.Files, faults: list[str]) -> tls.Identity | None:
    try:
        context = certificate.load()
    except tls.TlsFault as error:
        faults.append(str(error))
        return None
    return tls.Identity(context)


def _source(arguments: Arguments, settings: Settings, faults: list[str]) -> SourceFactory | None:
    if arguments.objects:
        return _objects(arguments.objects, faults)
    # Here and not above, because the client takes half a second and manifests need none.
    from tfadmit_webhook.kube import api, connection, reader  # noqa: PLC0415

    # Every review may look up, while a list and the watch are open.
    connections = settings.server.threads + 2
    try:
        if arguments.kubeconfig:
            client = connection.from_kubeconfig(arguments.kubeconfig, connections=connections)
        else:
            client = connection.in_cluster(connections=connections)
    except connection.ConnectionFault as error:
        faults.append(str(error))
        return None
    return lambda observer: reader.Cluster(api.Api(client), monitor=observer)


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
    return lambda _observer: objects_file.Objects(workloads, runtimes=runtimes)


def _text(option: str, path: Path, faults: list[str]) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        faults.append(f"{option} {path}: {error.strerror or error}")
    except UnicodeDecodeError:
        faults.append(f"{option} {path}: is no UTF-8 text")
    return None
