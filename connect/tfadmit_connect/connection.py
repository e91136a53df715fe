"""The Kubernetes client, connected: by a context of a kubeconfig, or by a pod's service account.

Here: where the API server is and how we prove who we are; the client renews tokens, and knows TLS
and proxies. I/O: kubeconfigs, the programs that they name for credentials, the files of a pod.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from kubernetes import client, config

from tfadmit_connect import acting_as, fault, place, promised, token_file

_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, kw_only=True)
class Connected:
    """A client, and the namespace that is meant where a command names none."""

    api_client: client.ApiClient
    namespace: str


def to(
    where: place.Place,
    *,
    connections: int,
    environ: Mapping[str, str] = os.environ,
    clock: token_file.Clock = time.monotonic,
) -> Connected:
    """Connect as kubectl does: by a kubeconfig if there is one, else as the pod that this is.

    `connections` are kept at most, and made when they are needed.

    Raises:
        ConnectError: the kubeconfig cannot be used, or there is none.
    """
    files = where.files(environ)
    if not _is_there(files):
        if files == place.USUAL and not where.context and "KUBERNETES_SERVICE_HOST" in environ:
            return in_pod(connections=connections)
        raise fault.ConnectError(
            f"{files}: there is no such kubeconfig: name one with --kubeconfig FILE"
        )
    try:
        return _by_kubeconfig(files, where, connections, clock)
    except fault.ConnectError:
        raise
    except Exception as error:  # nearly anything, for a kubeconfig of a wrong shape
        shown = "config get-contexts" if where.context else "version"
        raise fault.ConnectError(
            f"{files}: {fault.line(error)}; does `{where.kubectl} {shown}` work?"
        ) from error


def in_pod(*, connections: int) -> Connected:
    """Connect by the pod's service account; its token is read again before it expires.

    Raises:
        ConnectError: this is no pod with one.
    """
    configuration = _configuration(connections)
    try:
        config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration
        )
    except (config.ConfigException, OSError) as error:
        raise fault.ConnectError(
            f"--in-cluster works only in a pod with a service account token ({fault.line(error)}): "
            "outside of a cluster use --kubeconfig FILE"
        ) from error
    named = _NAMESPACE.read_text().strip() if _NAMESPACE.is_file() else ""
    made = _checked(configuration, source="the service account of the pod")
    return Connected(api_client=made, namespace=named or "default")


def _by_kubeconfig(
    files: str, where: place.Place, connections: int, clock: token_file.Clock
) -> Connected:
    configuration = _configuration(connections)
    merged = config.kube_config.KubeConfigMerger(files).config  # type: ignore[no-untyped-call]
    loader = config.kube_config.KubeConfigLoader(  # type: ignore[no-untyped-call]
        merged, active_context=where.context, config_base_path=None
    )
    with promised.or_fault(files):
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    context = loader.current_context["context"]
    user, folder = _user(merged, context.get("user"))
    if user.get("tokenFile") and not user.get("auth-provider"):  # which comes first, in the loader
        kept = token_file.TokenFile(
            folder / str(user["tokenFile"]), token=str(user.get("token") or ""), clock=clock
        )
        _read_again(configuration, kept, source=files)
    # Builds the connection pool, which looks at the addresses of server and proxy.
    made = _checked(configuration, source=files)
    _act(made, acting_as.headers(user, source=files))
    return Connected(api_client=made, namespace=str(context.get("namespace") or "default"))


def _configuration(connections: int) -> client.Configuration:
    configuration = client.Configuration()
    configuration.connection_pool_maxsize = connections
    # By default urllib3 asks three more times, each with the whole timeout.
    configuration.retries = False
    return configuration


def _checked(configuration: client.Configuration, *, source: str) -> client.ApiClient:
    value = configuration.auth_settings().get("BearerToken", {}).get("value")
    if not acting_as.is_header(value or ""):
        raise fault.ConnectError(
            f"{source}: the token of the context's user has a line feed or a letter that no token "
            "has: copy it again"
        )
    if not _is_address(str(configuration.host)):
        raise fault.ConnectError(
            f"{source}: the server {configuration.host!r} of the context is no address of an API "
            "server: write https://HOST:PORT"
        )
    return client.ApiClient(configuration)


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(text)
        return found.scheme in ("https", "http") and bool(found.hostname) and found.port != 0
    except ValueError:  # a port that is none
        return False


def _user(merged: Any, name: object) -> tuple[Mapping[str, Any], Path]:  # noqa: ANN401 - untyped
    """Give what a kubeconfig says of a user, and the folder of the file that says it."""
    # Each item is wrapped together with the file that it comes from.
    for item in merged.value["users"]:
        if item.value.get("name") == name:
            found = item.value.get("user")
            return found if isinstance(found, Mapping) else {}, Path(item.path).parent
    return {}, Path()


def _read_again(
    configuration: client.Configuration, kept: token_file.TokenFile, *, source: str
) -> None:
    """Ask for the token of a file before each request."""
    if not kept.current():
        raise fault.ConnectError(
            f"{source}: in {kept.path} (tokenFile of the context's user) there is no token, or "
            "there is a letter that no token has: copy it again"
        )

    def refresh(asked: client.Configuration) -> None:
        asked.api_key["BearerToken"] = f"Bearer {kept.current()}"

    configuration.refresh_api_key_hook = refresh  # type: ignore[assignment] # declared as None


def _act(api_client: client.ApiClient, headers: Sequence[acting_as.Header]) -> None:
    """Put headers into each request; one of them may be there several times."""
    if not headers:
        return
    pool: Any = api_client.rest_client.pool_manager
    send = pool.request

    def request(method: str, url: str, **options: Any) -> Any:  # noqa: ANN401 - urllib3's
        all_headers = urllib3.HTTPHeaderDict(options.pop("headers", None) or {})
        for name, value in headers:
            all_headers.add(name, value)
        return send(method, url, headers=all_headers, **options)

    pool.request = request


def _is_there(files: str) -> bool:
    """Whether one of the files is there; several stand as KUBECONFIG has them."""
    try:
        paths = list(_paths(files))
    except RuntimeError:  # a user without a home
        return False
    if len(paths) == 1 and paths[0].is_dir():
        raise fault.ConnectError(f"{files} is a folder: name the kubeconfig in it")
    return any(path.is_file() for path in paths)


def _paths(files: str) -> Iterator[Path]:
    return (Path(part).expanduser() for part in files.split(os.pathsep) if part)
