"""One GET over the connections of the Kubernetes client.

The client says where the API server is, who we are, and renews tokens. Its methods per kind of
object are passed by: they load hundreds of model classes, a third of the server's memory, for
objects that are read as plain dictionaries anyway. What answers mean is found in `asking`.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

Timeout = float | tuple[float, float]
"""Seconds for everything, or for connecting and for the time between two bytes."""


class Getter:
    """Who asks."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._configuration = api_client.configuration
        self._pool: Any = api_client.rest_client.pool_manager
        self._agent = api_client.user_agent

    def get(
        self, *path: str, timeout: Timeout, query: Mapping[str, str | int] | None = None
    ) -> Any:  # noqa: ANN401 - urllib3's response
        """Ask, and give the response unread.

        Raises:
            ApiException: the API server refused.
            urllib3.exceptions.HTTPError: there was no answer.
        """
        words = "".join(f"/{quote(word, safe='')}" for word in path)
        asked = f"?{urlencode(query)}" if query else ""
        response = self._pool.request(
            "GET",
            f"{self._configuration.host}{words}{asked}",
            headers={"Accept": "application/json", "User-Agent": self._agent, **self._token()},
            timeout=_timeout(timeout),
            preload_content=False,
        )
        if 200 <= response.status <= 299:
            return response
        error = ApiException(status=response.status, reason=response.reason)
        error.body = response.data.decode("utf-8", "replace")
        response.release_conn()
        raise error

    def _token(self) -> dict[str, str]:
        """The token, read again by the client when it is about to end."""
        settings = self._configuration.auth_settings()
        value = settings.get("BearerToken", {}).get("value")
        return {"Authorization": str(value)} if value else {}


def _timeout(timeout: Timeout) -> urllib3.Timeout:
    if isinstance(timeout, tuple):
        connect, read = timeout
        return urllib3.Timeout(connect=connect, read=read)
    return urllib3.Timeout(total=timeout)
