"""The questions that are asked of the API server, and what can go wrong with each.

Lists, watches and single objects as plain dictionaries. Every failure becomes one of the exceptions
below with a sentence; none of the client's exceptions leaves this module.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tfadmit_webhook import facts, raw

_GROUP, _VERSION, _PLURAL = "jobset.x-k8s.io", "v1alpha2", "jobsets"
_JOBSETS = f"{_PLURAL} of {_GROUP}"
_TRAINER, _TRAINER_VERSION = "trainer.kubeflow.org", "v1alpha1"
# Enough for a page of 500 JobSets; a single object takes milliseconds.
_LIST_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
_ROLE = "deploy/base/rbac.yaml grants it"


class ApiError(Exception):
    """The API server did not answer as asked; the message says what was asked and what came."""


class NotFoundError(ApiError):
    """There is no such object, or no such kind of object (404)."""


class ExpiredError(ApiError):
    """The version or the page that was asked for is gone (410); ask from the start."""


class Events(Protocol):
    """The events of a watch, which another thread may end."""

    def __iter__(self) -> Iterator[raw.JsonObject]:
        """Give the events as they come; ends when the API server ends the watch."""

    def interrupt(self) -> None:
        """Let the iteration end soon; from any thread."""


class Api:
    """The API server."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._custom = client.CustomObjectsApi(api_client)
        self._batch = client.BatchV1Api(api_client)

    def jobset(self, *, namespace: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one JobSet."""
        return _object(
            lambda: self._custom.get_namespaced_custom_object(
                _GROUP,
                _VERSION,
                namespace,
                _PLURAL,
                name,
                _preload_content=False,
                _request_timeout=timeout,
            ),
            asked=f"for JobSet {namespace}/{name}",
            right=f"get {_JOBSETS}",
        )

    def job(self, *, namespace: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one Job."""
        return _object(
            lambda: self._batch.read_namespaced_job(
                name, namespace, _preload_content=False, _request_timeout=timeout
            ),
            asked=f"for Job {namespace}/{name}",
            right="get jobs of batch",
        )

    def runtime(
        self, *, kind: facts.RuntimeKind, namespace: str, name: str, timeout: float
    ) -> raw.JsonObject:
        """Ask for one runtime; those of the whole cluster have no namespace."""
        plural = f"{kind.lower()}s"
        options: dict[str, Any] = {"_preload_content": False, "_request_timeout": timeout}

        def call() -> Any:  # noqa: ANN401 - urllib3's response
            if kind == "ClusterTrainingRuntime":
                return self._custom.get_cluster_custom_object(
                    _TRAINER, _TRAINER_VERSION, plural, name, **options
                )
            return self._custom.get_namespaced_custom_object(
                _TRAINER, _TRAINER_VERSION, namespace, plural, name, **options
            )

        return _object(
            call,
            asked=f"for {kind} {f'{namespace}/{name}' if namespace else name}",
            right=f"get {plural} of {_TRAINER}",
        )

    def jobsets(self, *, limit: int | None, token: str) -> raw.JsonObject:
        """Ask for one page of all JobSets; all in one page when there is no limit."""
        options: dict[str, Any] = {}
        if limit:
            options["limit"] = limit
        if token:
            options["_continue"] = token
        return _object(
            lambda: self._custom.list_cluster_custom_object(
                _GROUP,
                _VERSION,
                _PLURAL,
                _preload_content=False,
                _request_timeout=(_CONNECT_SECONDS, _LIST_SECONDS),
                **options,
            ),
            asked="for all JobSets",
            right=f"list {_JOBSETS}",
        )

    def watch_jobsets(self, *, version: str, seconds: int, silence: float) -> Events:
        """Ask for what happens to JobSets after a version, for so many seconds.

        `silence` is how long nothing at all may come before the connection counts as dead.
        """
        asked, right = "to watch all JobSets", f"watch {_JOBSETS}"
        response = _ask(
            lambda: self._custom.list_cluster_custom_object(
                _GROUP,
                _VERSION,
                _PLURAL,
                watch=True,
                allow_watch_bookmarks=True,
                resource_version=version,
                timeout_seconds=seconds,
                _preload_content=False,
                _request_timeout=(_CONNECT_SECONDS, silence),
            ),
            asked=asked,
            right=right,
        )
        return _Stream(response, asked=asked)


class _Stream:
    """Events out of a response, one per line."""

    def __init__(self, response: Any, *, asked: str) -> None:  # noqa: ANN401 - urllib3's response
        self._response = response
        self._asked = asked

    def __iter__(self) -> Iterator[raw.JsonObject]:
        try:
            for line in self._lines():
                yield raw.mapping(json.loads(line))
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ApiError(f"asked {self._asked}: {_reason(error)}") from error
        finally:
            self._response.close()

    def interrupt(self) -> None:
        # Closing a socket does not wake a thread that waits in recv; shutting it down does.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._response.stream(amt=None, decode_content=False):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line for line in lines if line.strip())
        if rest.strip():
            yield rest


def _object(call: Callable[[], Any], *, asked: str, right: str) -> raw.JsonObject:
    response = _ask(call, asked=asked, right=right)
    try:
        content = json.loads(response.read())
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise ApiError(f"asked {asked}: {_reason(error)}") from error
    finally:
        response.release_conn()
    if not isinstance(content, dict):
        raise ApiError(f"asked {asked}: the answer is no JSON object")
    return content


def _ask(call: Callable[[], Any], *, asked: str, right: str) -> Any:  # noqa: ANN401 - the same
    try:
        try:
            return call()
        except urllib3.exceptions.ProtocolError:
            # A kept connection that the other side has just closed; asking again harms nothing.
            return call()
    except ApiException as error:
        raise _named(error, asked=asked, right=right) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ApiError(f"asked {asked}: {_reason(error)}") from error


def _named(error: ApiException, *, asked: str, right: str) -> ApiError:
    said = _said(error)
    if error.status == 404:
        return NotFoundError(f"asked {asked}: 404, {said}")
    if error.status == 410:
        return ExpiredError(f"asked {asked}: 410, {said}")
    if error.status == 403:
        return ApiError(f"asked {asked}: may not {right} ({_ROLE}): {said}")
    if error.status == 401:
        return ApiError(f"asked {asked}: the credentials are not accepted: {said}")
    if not error.status:  # the client's way to tell of TLS
        return ApiError(f"asked {asked}: {' '.join(str(error.reason).split())}")
    return ApiError(f"asked {asked}: the API server answered {error.status}, {said}")


def _said(error: ApiException) -> str:
    """Take the message out of a Status object; else the HTTP reason."""
    body = error.body
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        message = raw.text(raw.mapping(json.loads(text)).get("message"))
    except ValueError:
        message = ""
    return message or str(error.reason or "without a reason")


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
    return f"the connection failed ({' '.join(str(error).split())})"
