"""The client's one adapter to a live cluster: pages of objects, and what can go wrong with them.

The only module of the client that knows the Kubernetes client, which it imports when it connects:
other commands work without it, and `--help` does not wait for it. Its exceptions end here.
"""

import json
import os
from pathlib import Path
from typing import Any

from tfadmit_client import fault, listing
from tfadmit_webhook import raw

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_DEFAULT = "~/.kube/config"
_INSTALL = {
    "trainer.kubeflow.org": "install Kubeflow Trainer 2.x",
    "jobset.x-k8s.io": "install JobSet",
}


def connect(*, kubeconfig: str | None = None, context: str | None = None) -> listing.Reader:
    """Connect by a kubeconfig, or in a pod by its service account.

    Raises:
        ClientError: the kubeconfig cannot be used.
    """
    try:
        api_client = _client(kubeconfig, context)
    except fault.ClientError:
        raise
    except Exception as error:  # nearly anything, for a kubeconfig of a wrong shape
        shown = "config get-contexts" if context else "version"
        raise fault.ClientError(
            f"{_files(kubeconfig)}: {_line(error)}; does `{_kubectl(kubeconfig)} {shown}` work?"
        ) from error
    option = f" --context {context}" if context else ""
    return Live(api_client, kubectl=f"{_kubectl(kubeconfig)}{option}")


def _client(kubeconfig: str | None, context: str | None) -> Any:  # noqa: ANN401 - the client has no types
    from kubernetes import client, config  # noqa: PLC0415 - see above

    configuration = client.Configuration()
    # By default urllib3 asks three more times, each with the whole timeout.
    configuration.retries = False
    files = _files(kubeconfig)
    if any(Path(part).expanduser().is_file() for part in files.split(os.pathsep) if part):
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=files,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    elif files != _DEFAULT or context or "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise fault.ClientError(
            f"{files}: there is no such kubeconfig: name one with --kubeconfig FILE"
        )
    else:
        config.load_incluster_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration
        )
    # Builds the connection pool, which looks at the addresses of server and proxy.
    return client.ApiClient(configuration)


class Live:
    """The API server."""

    def __init__(self, api_client: Any, *, kubectl: str) -> None:  # noqa: ANN401 - the client has no types
        from kubernetes import client  # noqa: PLC0415 - see above

        self._custom = client.CustomObjectsApi(api_client)
        self._address: str = api_client.configuration.host
        self._kubectl = kubectl

    def page(
        self, kind: listing.Kind, *, namespace: str | None, limit: int, token: str
    ) -> raw.JsonObject:
        """Ask for a page of a kind, of one namespace or of all.

        Raises:
            ReadError: there is none, and why.
        """
        import urllib3  # noqa: PLC0415 - see above
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

        try:
            try:
                data = self._ask(kind, namespace=namespace, limit=limit, token=token)
            except urllib3.exceptions.ProtocolError:
                # A kept connection that the other side has just closed.
                data = self._ask(kind, namespace=namespace, limit=limit, token=token)
            content = json.loads(data)
        except ApiException as error:
            raise self._named(error, kind, namespace=namespace) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unreachable(_reason(error)) from error
        except (ValueError, RecursionError) as error:
            raise listing.ReadError(f"the answer of {self._address} is no JSON") from error
        if not isinstance(content, dict):
            raise listing.ReadError(f"the answer of {self._address} is no JSON object")
        return content

    def _ask(self, kind: listing.Kind, *, namespace: str | None, limit: int, token: str) -> bytes:
        options: dict[str, Any] = {
            "limit": limit,
            "_preload_content": False,
            "_request_timeout": (_CONNECT_SECONDS, _READ_SECONDS),
        }
        if token:
            options["_continue"] = token
        where = (kind.group, kind.version)
        response: Any
        if namespace:
            response = self._custom.list_namespaced_custom_object(
                *where, namespace, kind.plural, **options
            )
        else:
            response = self._custom.list_cluster_custom_object(*where, kind.plural, **options)
        try:
            data: bytes = response.read()
        finally:
            response.release_conn()
        return data

    def _named(self, error: Any, kind: listing.Kind, *, namespace: str | None) -> listing.ReadError:  # noqa: ANN401 - the client has no types
        said = _said(error)
        resource = f"{kind.plural}.{kind.group}"
        if error.status == 410:
            return listing.ExpiredError(f"the list changed too often while it was read: {said}")
        if error.status == 404:
            install = _INSTALL.get(kind.group, "install it")
            return listing.ReadError(
                f"the cluster does not serve {resource}/{kind.version}: {install}; "
                f"`{self._kubectl} get crd {resource}` shows whether it is there"
            )
        if error.status == 403:
            role = "a Role in it" if namespace else "a ClusterRole"
            where = f"in namespace {namespace}" if namespace else "in the whole cluster"
            return listing.ReadError(
                f"you may not list {resource} {where} (403): {role} with the verb list on it, "
                f"bound to you, grants that: {said}"
            )
        if error.status == 401:
            return self._unreachable(f"your credentials are not accepted (401): {said}")
        if not error.status:  # the client's way to tell of TLS
            return self._unreachable(_line(error.reason))
        return listing.ReadError(f"the API server answered {error.status}: {said}")

    def _unreachable(self, reason: str) -> listing.UnreachableError:
        return listing.UnreachableError(
            f"{self._address}: {reason}; does `{self._kubectl} version` work? If not: is it the "
            "right kubeconfig and context, is the cluster up, is a VPN or proxy needed?"
        )


def _reason(error: Exception) -> str:
    import urllib3  # noqa: PLC0415 - see above

    # urllib3 counts a refused connection among the timeouts, so it is asked for first.
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"the API server cannot be reached ({error.__cause__ or error})"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "the API server did not answer in time"
    return f"the connection failed ({_line(error)})"


def _said(error: Any) -> str:  # noqa: ANN401 - the client has no types
    """Take the message out of a Status object; else the HTTP reason."""
    body = error.body
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        message = raw.text(raw.mapping(json.loads(text)).get("message"))
    except ValueError:
        message = ""
    return message or str(error.reason or "without a reason")


def _files(kubeconfig: str | None) -> str:
    return kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT


def _kubectl(kubeconfig: str | None) -> str:
    return f"kubectl --kubeconfig {kubeconfig}" if kubeconfig else "kubectl"


def _line(error: object) -> str:
    return " ".join(str(error).split()) or type(error).__name__
