"""The API server: connect, one request, one watch, and what can go wrong with each.

Of the Kubernetes client only how it connects is used, by way of `tfadmit_connect`: kubeconfig,
service account, renewal of tokens, TLS, proxies. Requests are plain JSON over its connection pool,
so unknown fields survive and no rate limit stands in the way. Not here: which objects (`secret`,
`lease`). I/O: the network.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3

from tfadmit_certs import fault
from tfadmit_connect import connection, place
from tfadmit_connect.fault import ConnectError, line

JsonObject = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
_JSON = "application/json"
_CONNECT_SECONDS = 3.0
# The objects are small. A renewal of the Lease must come through within its deadline.
_READ_SECONDS = 4.0
# Objects, watches and the Lease, from three threads and five watches.
_CONNECTIONS = 16


class ApiError(fault.CertsError):
    """The API server did not do as asked; `status` is 0 when it did not answer."""

    code = 3

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotFoundError(ApiError):
    """There is no such object (404)."""


class ConflictError(ApiError):
    """Somebody else was faster (409): look again."""


class Api:
    """One connection pool to an API server."""

    def __init__(self, api_client: Any) -> None:  # noqa: ANN401 - the client has no types
        self._configuration = api_client.configuration
        self._pool: Any = api_client.rest_client.pool_manager
        self.address: str = self._configuration.host

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | list[JsonObject] | None = None,
        content_type: str = _JSON,
    ) -> JsonObject:
        """Send one request; the answer is a JSON object.

        Raises:
            ApiError: and its kinds, with a sentence.
        """
        asked = f"{method} {path}"
        # A kept connection may just have been closed. Only a question is asked again: a write that
        # came through unseen must be looked at first.
        attempts = 2 if method == "GET" else 1
        response = self._send(
            method, path, query=query, body=body, content_type=content_type, attempts=attempts
        )
        try:
            content = json.loads(response.read())
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ApiError(f"{asked}: {_reason(error)}") from error
        finally:
            response.release_conn()
        if response.status >= 400:
            # A JSON patch of ours is refused as unprocessable when one of its tests fails.
            failed_test = response.status == 422 and content_type == JSON_PATCH
            raise _named(409 if failed_test else response.status, content, asked=asked)
        if not isinstance(content, dict):
            raise ApiError(f"{asked}: the answer is no JSON object")
        return content

    def watch(self, path: str, *, query: Mapping[str, str], silence: float) -> "Events":
        """Begin a watch; `silence` is after how many seconds without a word it counts as dead.

        Raises:
            ApiError: and its kinds, with a sentence.
        """
        response = self._send("GET", path, query=query, silence=silence)
        if response.status >= 400:
            try:
                content = json.loads(response.read())
            except (urllib3.exceptions.HTTPError, OSError, ValueError):
                content = {}
            raise _named(response.status, content, asked=f"watch {path}")
        return Events(response, asked=f"watch {path}")

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | list[JsonObject] | None = None,
        content_type: str = _JSON,
        silence: float = _READ_SECONDS,
        attempts: int = 1,
    ) -> Any:  # noqa: ANN401 - urllib3's response
        headers = {"Accept": _JSON, "User-Agent": "tfadmit-certs", **self._credentials()}
        if body is not None:
            headers["Content-Type"] = content_type
        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        while True:
            attempts -= 1
            try:
                return self._pool.request(
                    method,
                    url,
                    body=None if body is None else json.dumps(body),
                    headers=headers,
                    timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=silence),
                    retries=False,
                    preload_content=False,
                )
            except urllib3.exceptions.ProtocolError as error:
                if attempts <= 0:
                    raise ApiError(f"{method} {self.address}{path}: {_reason(error)}") from error
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise ApiError(f"{method} {self.address}{path}: {_reason(error)}") from error

    def _credentials(self) -> dict[str, str]:
        """The bearer token, renewed by the client's hook when it is about to end."""
        settings = self._configuration.auth_settings()
        value = settings.get("BearerToken", {}).get("value")
        return {"Authorization": str(value)} if value else {}


class Events:
    """The events of a watch, one per line of its answer."""

    def __init__(self, response: Any, *, asked: str) -> None:  # noqa: ANN401 - urllib3's response
        self._response = response
        self._asked = asked

    def __iter__(self) -> Iterator[JsonObject]:
        try:
            rest = b""
            for chunk in self._response.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line.strip())
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ApiError(f"{self._asked}: {_reason(error)}") from error
        finally:
            self._response.close()

    def interrupt(self) -> None:
        """Let the iteration end soon; from any thread."""
        # Closing a socket does not wake a thread that waits in recv; shutting it down does.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()


def in_cluster() -> Api:
    """Connect with the pod's service account; its token is read again before it ends.

    Raises:
        CertsError: this is no pod with one.
    """
    with _told():
        return Api(connection.in_pod(connections=_CONNECTIONS).api_client)


def connect(where: place.Place) -> Api:
    """Connect as kubectl does: by a kubeconfig if there is one, else as the pod that this is.

    Raises:
        CertsError: it cannot be used.
    """
    with _told():
        return Api(connection.to(where, connections=_CONNECTIONS).api_client)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ConnectError as error:
        raise fault.CertsError(str(error)) from error


def _named(status: int, content: object, *, asked: str) -> ApiError:
    said = str(content.get("message", "")) if isinstance(content, dict) else ""
    said = said or "without a reason"
    if status == 404:
        return NotFoundError(f"{asked}: 404, {said}", status=status)
    if status == 409:
        return ConflictError(f"{asked}: 409, {said}", status=status)
    if status == 403:
        text = f"{asked}: not allowed, deploy/overlays/self-managed/rbac.yaml grants it: {said}"
        return ApiError(text, status=status)
    if status == 401:
        return ApiError(f"{asked}: the credentials are not accepted: {said}", status=status)
    return ApiError(f"{asked}: the API server answered {status}, {said}", status=status)


def _reason(error: Exception) -> str:
    # urllib3 counts a refused connection among the timeouts, so it is asked for first.
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"the API server cannot be reached ({error.__cause__ or error})"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "the API server did not answer in time"
    # urllib3 counts an address that cannot be read among the ValueErrors.
    if isinstance(error, ValueError) and not isinstance(
        error, OSError | urllib3.exceptions.HTTPError
    ):
        return f"the answer is no JSON ({error})"
    return f"the connection failed ({line(error)})"
