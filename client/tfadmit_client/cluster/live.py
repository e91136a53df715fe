"""The client's one adapter to a live cluster: pages of objects, and what can go wrong with them.

The only module of the client that knows the Kubernetes client, which is imported when it connects:
other commands work without it, and `--help` does not wait for it. Its exceptions end here.
"""

import json
from collections.abc import Callable
from typing import Any

from tfadmit_client import fault
from tfadmit_client.cluster import listing, live_wire
from tfadmit_connect import place
from tfadmit_connect.fault import ConnectError, line
from tfadmit_webhook import api_status, raw

# One for each task of a big job whose log is followed; they are made when they are needed.
_CONNECTIONS = 1000


def connect(*, kubeconfig: str | None = None, context: str | None = None) -> "Live":
    """Connect by a kubeconfig, or in a pod by its service account.

    Raises:
        ClientError: the kubeconfig cannot be used.
    """
    from tfadmit_connect import connection  # noqa: PLC0415 - loads the Kubernetes client

    where = place.Place(kubeconfig=kubeconfig, context=context)
    try:
        found = connection.to(where, connections=_CONNECTIONS)
    except ConnectError as error:
        raise fault.ClientError(str(error)) from error
    return Live(found.api_client, flags=where.flags, default_namespace=found.namespace)


class Live:
    """The API server."""

    def __init__(
        self,
        api_client: Any,  # noqa: ANN401 - the client has no types
        *,
        flags: str = "",
        default_namespace: str = "default",
    ) -> None:
        from kubernetes import client  # noqa: PLC0415 - see above

        self._api: Any = client
        self._client = api_client
        self._custom = client.CustomObjectsApi(api_client)
        self.address: str = api_client.configuration.host
        self.flags = flags
        """What reaches this very cluster by `tfadmit` and `kubectl`, each after a space."""

        self.default_namespace = default_namespace
        """The one of the context, as kubectl takes it."""

    def wire(self) -> live_wire.Wire:
        """Give the connections for requests of any kind."""
        return live_wire.Wire(self._client, flags=self.flags)

    def page(
        self, kind: listing.Kind, *, namespace: str | None, limit: int, token: str
    ) -> raw.JsonObject:
        """Ask for a page of a kind, of one namespace or of all.

        Raises:
            ReadError: there is none, and why.
        """
        options = {"limit": limit, **({"_continue": token} if token else {})}
        where = (kind.group, kind.version)
        try:
            if namespace:
                return self._answer(
                    self._custom.list_namespaced_custom_object,
                    *where, namespace, kind.plural, **options,
                )  # fmt: skip
            return self._answer(
                self._custom.list_cluster_custom_object, *where, kind.plural, **options
            )
        except listing.StatusError as error:
            raise live_wire.named(error, kind, namespace=namespace, flags=self.flags) from error

    def namespace(self, name: str) -> raw.JsonObject:
        """Ask for a namespace."""
        return self._answer(self._api.CoreV1Api(self._client).read_namespace, name)

    def version(self) -> raw.JsonObject:
        """Ask for the version of the API server."""
        return self._answer(self._api.VersionApi(self._client).get_code)

    def groups(self) -> raw.JsonObject:
        """Ask for the API groups."""
        return self._answer(self._api.ApisApi(self._client).get_api_versions)

    def resources(self, group: str, version: str) -> raw.JsonObject:
        """Ask for the kinds of a group."""
        return self._answer(self._custom.get_api_resources, group, version)

    def configuration(self, plural: str) -> raw.JsonObject:
        """Ask for our webhook configuration of one of the two kinds."""
        return self._answer(
            self._custom.get_cluster_custom_object,
            "admissionregistration.k8s.io", "v1", plural, "tfadmit",
        )  # fmt: skip

    def secret(self, namespace: str, name: str) -> raw.JsonObject:
        """Ask for a Secret."""
        return self._answer(
            self._api.CoreV1Api(self._client).read_namespaced_secret, name, namespace
        )

    def config_map(self, namespace: str, name: str) -> raw.JsonObject:
        """Ask for a ConfigMap."""
        return self._answer(
            self._api.CoreV1Api(self._client).read_namespaced_config_map, name, namespace
        )

    def role_binding(self, namespace: str, name: str) -> raw.JsonObject:
        """Ask for a RoleBinding."""
        return self._answer(
            self._api.RbacAuthorizationV1Api(self._client).read_namespaced_role_binding,
            name, namespace,
        )  # fmt: skip

    def tried_pod(self, namespace: str, pod: raw.JsonObject) -> raw.JsonObject:
        """Create a pod by a dry run: give it as it would be."""
        create = self._api.CoreV1Api(self._client).create_namespaced_pod
        return self._answer(create, namespace, pod, dry_run="All")

    def _answer(
        self, call: Callable[..., Any], *words: object, **options: object
    ) -> raw.JsonObject:
        """Send one request.

        Raises:
            StatusError: it is refused.
            UnreachableError: nobody answers.
            ReadError: the answer cannot be read.
        """
        import urllib3  # noqa: PLC0415 - see above
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

        try:
            try:
                data = _data(call, *words, **options)
            except urllib3.exceptions.ProtocolError:
                # A kept connection that the other side has just closed.
                data = _data(call, *words, **options)
            content = json.loads(data)
        except ApiException as error:
            raise self._refused(error) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unreachable(live_wire.reason(error)) from error
        except (ValueError, RecursionError) as error:
            raise listing.ReadError(f"the answer of {self.address} is no JSON") from error
        if not isinstance(content, dict):
            raise listing.ReadError(f"the answer of {self.address} is no JSON object")
        return content

    def _refused(self, error: Any) -> listing.ReadError:  # noqa: ANN401 - the client has no types
        if not error.status:  # the client's way to tell of TLS
            return self._unreachable(line(error.reason))
        said = api_status.message(error.body, otherwise=error.reason)
        if error.status == 401:
            return self._unreachable(f"your credentials are not accepted (401): {said}")
        return listing.StatusError(error.status, said)

    def _unreachable(self, reason: str) -> listing.UnreachableError:
        return live_wire.unreachable(self.address, reason, flags=self.flags)


def _data(call: Callable[..., Any], *words: object, **options: object) -> bytes:
    response = call(
        *words,
        **options,
        _preload_content=False,
        _request_timeout=(live_wire.CONNECT_SECONDS, live_wire.READ_SECONDS),
    )
    try:
        data: bytes = response.read()
    finally:
        response.release_conn()
    return data
