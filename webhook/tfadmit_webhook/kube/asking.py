"""How a question to the API server ends: with an answer, or with a sentence about what went wrong.

Every failure becomes one of the exceptions below; none of the client's exceptions leaves this
module. Which questions there are stands in `api` and `collection`.
"""

import json
from collections.abc import Callable
from typing import Any

import urllib3
from kubernetes.client.exceptions import ApiException

from tfadmit_webhook import api_status, raw

_ROLE = "deploy/base/rbac.yaml grants it"


class ApiError(Exception):
    """The API server did not answer as asked; the message says what was asked and what came."""


class NotFoundError(ApiError):
    """There is no such object, or no such kind of object (404)."""


class ExpiredError(ApiError):
    """The version or the page that was asked for is gone (410); ask from the start."""


def answer(call: Callable[[], Any], *, asked: str, right: str) -> raw.JsonObject:
    """Ask for one object.

    Args:
        call: the client's function, which gives the response unread.
        asked: what is asked, after "asked".
        right: the right that it takes, after "may not".
    """
    response = ask(call, asked=asked, right=right)
    try:
        content = json.loads(response.read())
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise ApiError(f"asked {asked}: {reason(error)}") from error
    finally:
        response.release_conn()
    if not isinstance(content, dict):
        raise ApiError(f"asked {asked}: the answer is no JSON object")
    return content


def ask(call: Callable[[], Any], *, asked: str, right: str) -> Any:  # noqa: ANN401 - urllib3's response
    """Ask, and give the response unread; the arguments are those of `answer`."""
    try:
        try:
            return call()
        except urllib3.exceptions.ProtocolError:
            # A kept connection that the other side has just closed; asking again harms nothing.
            return call()
    except ApiException as error:
        raise _named(error, asked=asked, right=right) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ApiError(f"asked {asked}: {reason(error)}") from error


def _named(error: ApiException, *, asked: str, right: str) -> ApiError:
    said = api_status.message(error.body, otherwise=error.reason)
    if error.status == 404:
        return NotFoundError(f"asked {asked}: 404, {said}")
    if error.status == 410:
        return ExpiredError(f"asked {asked}: 410, {said}")
    if error.status == 403:
        return ApiError(f"asked {asked}: may not {right} ({_ROLE}): {said}")
    if error.status == 401:
        return ApiError(f"asked {asked}: the credentials are not accepted: {said}")
    return ApiError(f"asked {asked}: the API server answered {error.status}, {said}")


def reason(error: Exception) -> str:
    """Say why there was no answer, for what breaks below HTTP."""
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
