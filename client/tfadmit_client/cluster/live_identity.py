"""Who asks an API server and how it is reached: kubeconfig or service account, and acting as whom.

Beside `live` the only module of the client that knows the Kubernetes client; its exceptions end
there.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfadmit_client import fault
from tfadmit_client.cluster import acting_as, credentials
from tfadmit_webhook import raw

_DEFAULT = "~/.kube/config"
# One for each task of a big job whose log is followed; they are made when they are needed.
_CONNECTIONS = 1000
_IN_POD = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


def client(kubeconfig: str | None, context: str | None) -> Any:  # noqa: ANN401 - the client has no types
    """Give the Kubernetes client of a context.

    Raises:
        ClientError: the kubeconfig cannot be used; for one of a wrong shape, nearly anything else.
    """
    from kubernetes import client as api  # noqa: PLC0415 - as in `live`
    from kubernetes import config  # noqa: PLC0415 - the same

    configuration = api.Configuration()
    # By default urllib3 asks three more times, each with the whole timeout.
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    user: raw.JsonObject = {}
    named = files(kubeconfig)
    if _is_there(named):
        with credentials.or_fault(named):
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=named,
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        user = _user(named, context)
    elif named != _DEFAULT or context or "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise fault.ClientError(
            f"{named}: there is no such kubeconfig: name one with --kubeconfig FILE"
        )
    else:
        config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration
        )
    if not all(acting_as.is_header(value) for value in configuration.api_key.values()):
        raise fault.ClientError(
            f"{named}: the token of the context's user has a line feed or a letter that no token "
            "has: copy it again"
        )
    if not str(configuration.host).lower().startswith(("https://", "http://")):
        raise fault.ClientError(
            f"{named}: the server {configuration.host!r} of the context is no address of an API "
            "server: write https://HOST:PORT"
        )
    # Builds the connection pool, which looks at the addresses of server and proxy.
    made = api.ApiClient(configuration)
    _act(made, acting_as.headers(user, source=named))
    return made


def _user(named: str, context: str | None) -> raw.JsonObject:
    from kubernetes import config  # noqa: PLC0415 - as in `live`

    merged = config.kube_config.KubeConfigMerger(named).config.value  # type: ignore[no-untyped-call]
    # Each item is wrapped together with the file that it comes from.
    plain = {key: [item.value for item in merged[key]] for key in ("contexts", "users")}
    current = raw.text(merged.get("current-context"))
    return acting_as.user_of({**plain, "current-context": current}, context=context)


def _act(api_client: Any, headers: Sequence[acting_as.Header]) -> None:  # noqa: ANN401 - see above
    """Put headers into each request; one of them may be there several times."""
    import urllib3  # noqa: PLC0415 - as in `live`

    if not headers:
        return
    pool = api_client.rest_client.pool_manager
    send = pool.request

    def request(method: str, url: str, **options: Any) -> Any:  # noqa: ANN401 - urllib3's
        all_headers = urllib3.HTTPHeaderDict(options.pop("headers", None) or {})
        for name, value in headers:
            all_headers.add(name, value)
        return send(method, url, headers=all_headers, **options)

    pool.request = request


def _is_there(named: str) -> bool:
    """Whether one of the files is there; `named` has them as KUBECONFIG has."""
    try:
        paths = [Path(part).expanduser() for part in named.split(os.pathsep) if part]
    except RuntimeError:  # a user without a home
        return False
    if len(paths) == 1 and paths[0].is_dir():
        raise fault.ClientError(f"{named} is a folder: name the kubeconfig in it")
    return any(path.is_file() for path in paths)


def default_namespace(kubeconfig: str | None, context: str | None) -> str:
    """Give the namespace that a context states, or a pod's own."""
    from kubernetes import config  # noqa: PLC0415 - as in `live`

    try:
        contexts, current = config.list_kube_config_contexts(  # type: ignore[no-untyped-call]
            files(kubeconfig)
        )
    except config.ConfigException:
        file = Path(_IN_POD)
        return (file.read_text().strip() if file.is_file() else "") or "default"
    chosen = next((item for item in contexts if item["name"] == context), current)
    return raw.text(raw.at(chosen, ("context", "namespace"))) or "default"


def files(kubeconfig: str | None) -> str:
    """Give the kubeconfig that is meant, or several as KUBECONFIG has them."""
    return kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
