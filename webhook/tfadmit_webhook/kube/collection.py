"""Collections of objects that can be listed in pages and watched.

One class for all kinds; what differs are the path and the words for people. Questions
about single objects are in `api`.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import urllib3

from tfadmit_webhook import raw
from tfadmit_webhook.kube import asking

# Enough for a page of 500 JobSets; a single object takes milliseconds.
_LIST_SECONDS = 30.0
_CONNECT_SECONDS = 5.0


class Events(Protocol):
    """The events of a watch, which another thread may end."""

    def __iter__(self) -> Iterator[raw.JsonObject]:
        """Give the events as they come; ends when the API server ends the watch."""

    def interrupt(self) -> None:
        """Let the iteration end soon; from any thread."""


class Collection:
    """All objects that one path gives."""

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        what: str,
        nouns: str,
        absent: str,
        selector: Mapping[str, str] | None = None,
    ) -> None:
        """Bind a path.

        Args:
            call: asks for the path, with a `query` and a `timeout`.
            what: the objects, after "asked for".
            nouns: the kind, after "may not list".
            absent: what it means that the API server does not know the kind.
            selector: the part of the query that says which objects are meant.
        """
        self._selector = selector or {}
        self._call = call
        self.what = what
        self._nouns = nouns
        self.absent = absent

    def page(self, *, limit: int | None, token: str) -> raw.JsonObject:
        """Ask for one page; all in one page when there is no limit."""
        query: dict[str, str | int] = {**self._selector}
        if limit:
            query["limit"] = limit
        if token:
            query["continue"] = token
        return asking.answer(
            lambda: self._call(query=query, timeout=(_CONNECT_SECONDS, _LIST_SECONDS)),
            asked=f"for {self.what}",
            right=f"list {self._nouns}",
        )

    def watch(self, *, version: str, seconds: int, silence: float) -> Events:
        """Ask for what happens after a version, for so many seconds.

        `silence` is how long nothing at all may come before the connection counts as dead.
        """
        asked = f"to watch {self.what}"
        query = {
            **self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": seconds,
        }
        response = asking.ask(
            lambda: self._call(query=query, timeout=(_CONNECT_SECONDS, silence)),
            asked=asked,
            right=f"watch {self._nouns}",
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
            raise asking.ApiError(f"asked {self._asked}: {asking.reason(error)}") from error
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
