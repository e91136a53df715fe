"""A client for the API server, from the pod's service account or from a kubeconfig.

Here: where the server is and how we prove who we are. Questions are asked in `api`.
"""

from pathlib import Path

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

# What the client raises for a kubeconfig of a wrong shape, beside its own exception.
_MALFORMED = (
    ConfigException,
    yaml.YAMLError,
    RecursionError,
    urllib3.exceptions.HTTPError,
    OSError,
    TypeError,
    KeyError,
    ValueError,
    AttributeError,
)


class ConnectionFault(Exception):  # noqa: N818 - named like the faults of settings and files
    """The cluster's address or credentials cannot be used; the message says what mends it."""


def in_cluster(*, connections: int) -> client.ApiClient:
    """Connect with the pod's service account; its token is read again before it expires."""
    configuration = _configuration(connections)
    try:
        config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration
        )
    except (ConfigException, OSError) as error:
        raise ConnectionFault(
            f"--in-cluster works only in a pod with a service account token ({_line(error)}): "
            "outside of a cluster use --kubeconfig FILE"
        ) from error
    return client.ApiClient(configuration)


def from_kubeconfig(path: Path, *, connections: int) -> client.ApiClient:
    """Connect with the current context of a kubeconfig."""
    configuration = _configuration(connections)
    if not path.is_file():
        raise ConnectionFault(f"--kubeconfig {path}: there is no such file")
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(path), client_configuration=configuration, persist_config=False
        )
        # Builds the connection pool, which looks at the addresses of server and proxy.
        return client.ApiClient(configuration)
    except _MALFORMED as error:
        raise ConnectionFault(
            f"--kubeconfig {path}: {_line(error)}; does kubectl --kubeconfig {path} version work?"
        ) from error


def _configuration(connections: int) -> client.Configuration:
    configuration = client.Configuration()
    configuration.connection_pool_maxsize = connections
    # By default urllib3 asks three more times, each with the whole timeout.
    configuration.retries = False
    return configuration


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
