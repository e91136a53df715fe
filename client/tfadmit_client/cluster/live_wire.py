"""Requests of any kind to the API server, as JSON or as a stream of lines, and what can go wrong.

Over the connections of the Kubernetes client, which knows how to connect and who asks; unknown
fields survive, as nothing is read into the client's classes. Which objects is for `live_jobs`.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from tfadmit_client.cluster import listing
from tfadmit_connect.fault import line
from tfadmit_webhook import api_status, raw

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
MERGE = "application/merge-patch+json"
_JSON = "application/json"
_INSTALL = {
    "trainer.kubeflow.org": "install Kubeflow Trainer 2.x",
    "jobset.x-k8s.io": "install JobSet",
    "kubeflow.org": "the training operator is not there, so there is nothing to read; name files "
    "with -f",
}


class Wire:
    """The connections to an API server."""

    def __init__(self, api_client: Any, *, flags: str) -> None:  # noqa: ANN401 - the client has no types
        self._configuration = api_client.configuration
        self._pool: Any = api_client.rest_client.pool_manager
        self.address: str = self._configuration.host
        self.flags = flags

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = _JSON,
    ) -> raw.JsonObject:
        """Send one request; the answer is a JSON object.

        Raises:
            StatusError: it is refused.
            UnreachableError: nobody answers.
            ReadError: the answer cannot be read.
        """
        response = self._send(method, path, query=query, body=body, content_type=content_type)
        data = self._read(response)
        if response.status >= 400:
            raise self._refused(response, data)
        try:
            content = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise listing.ReadError(f"the answer of {self.address} is no JSON") from error
        if not isinstance(content, dict):
            raise listing.ReadError(f"the answer of {self.address} is no JSON object")
        return content

    def stream(self, path: str, *, query: Mapping[str, str], silence: float) -> "Stream":
        """Begin an answer that may go on for long; `silence` is after how many seconds it is dead.

        Raises:
            StatusError: it is refused.
            UnreachableError: nobody answers.
        """
        response = self._send("GET", path, query=query, silence=silence)
        if response.status >= 400:
            raise self._refused(response, self._read(response))
        return Stream(response, wire=self)

    def broken(self, error: Exception) -> listing.UnreachableError:
        """Say what went wrong with a connection."""
        return unreachable(self.address, reason(error), flags=self.flags)

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = _JSON,
        silence: float = READ_SECONDS,
    ) -> Any:  # noqa: ANN401 - urllib3's response
        import urllib3  # noqa: PLC0415 - `--help` does not wait for it

        headers = {"Accept": f"{_JSON}, */*", "User-Agent": "tfadmit", **self._credentials()}
        if body is not None:
            headers["Content-Type"] = content_type
        url = f"{self.address}{path}" + (f"?{urlencode(query)}" if query else "")
        options = {
            "body": None if body is None else json.dumps(body),
            "headers": headers,
            "timeout": urllib3.Timeout(connect=CONNECT_SECONDS, read=silence),
            "retries": False,
            "preload_content": False,
        }
        try:
            try:
                return self._pool.request(method, url, **options)
            except urllib3.exceptions.ProtocolError:
                # A kept connection that the other side has just closed. Only a question is asked
                # again: a write may have come through unseen.
                if method != "GET":
                    raise
                return self._pool.request(method, url, **options)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self.broken(error) from error

    def _read(self, response: Any) -> bytes:  # noqa: ANN401 - urllib3's response
        import urllib3  # noqa: PLC0415 - see above

        try:
            data: bytes = response.read()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self.broken(error) from error
        finally:
            response.release_conn()
        return data

    def _refused(self, response: Any, data: bytes) -> listing.ReadError:  # noqa: ANN401 - see above
        said = api_status.message(data, otherwise=response.reason)
        if response.status == 401:
            text = f"your credentials are not accepted (401): {said}"
            return unreachable(self.address, text, flags=self.flags)
        return listing.StatusError(response.status, said)

    def _credentials(self) -> dict[str, str]:
        """The bearer token, renewed by the client's hook when it is about to end."""
        value = self._configuration.auth_settings().get("BearerToken", {}).get("value")
        return {"Authorization": str(value)} if value else {}


class Stream:
    """The lines of an answer as they come, each with its line feed if it has one."""

    def __init__(self, response: Any, *, wire: Wire) -> None:  # noqa: ANN401 - urllib3's response
        self._response = response
        self._wire = wire

    def __iter__(self) -> Iterator[bytes]:
        """Give the lines.

        Raises:
            UnreachableError: the connection broke, or was silent for too long.
        """
        import urllib3  # noqa: PLC0415 - see above

        rest = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line + b"\n" for line in lines)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise self._wire.broken(error) from error
        finally:
            self._response.close()
        if rest:
            yield rest

    def interrupt(self) -> None:
        """Let the iteration end soon; from any thread."""
        # Closing a socket does not wake a thread that waits in recv; shutting it down does.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()


def unreachable(address: str, reason: str, *, flags: str) -> listing.UnreachableError:
    """Say that nobody answers, and what may help."""
    return listing.UnreachableError(
        f"{address}: {reason}; does `kubectl{flags} version` work? If not: is it the "
        "right kubeconfig and context, is the cluster up, is a VPN or proxy needed?"
    )


def reason(error: Exception) -> str:
    """Say what an exception of the connection means."""
    import urllib3  # noqa: PLC0415 - see above

    # urllib3 counts a refused connection among the timeouts, so it is asked for first.
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"the API server cannot be reached ({error.__cause__ or error})"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "the API server did not answer in time"
    return f"the connection failed ({line(error)})"


def named(
    error: listing.StatusError, kind: listing.Kind, *, namespace: str | None, flags: str
) -> listing.ReadError:
    """Say what a refused list means for a kind."""
    resource = f"{kind.plural}.{kind.group}".rstrip(".")
    if error.status == 410:
        return listing.ExpiredError(f"the list changed too often while it was read: {error.said}")
    if error.status == 404:
        install = _INSTALL.get(kind.group, "install it")
        return listing.ReadError(
            f"the cluster does not serve {resource}/{kind.version}: {install}; "
            f"`kubectl{flags} get crd {resource}` shows whether it is there"
        )
    if error.status == 403:
        role = "a Role in it" if namespace else "a ClusterRole"
        where = f"in namespace {namespace}" if namespace else "in the whole cluster"
        return listing.ReadError(
            f"you may not list {resource} {where} (403): {role} with the verb list on it, "
            f"bound to you, grants that: {error.said}"
        )
    return error
