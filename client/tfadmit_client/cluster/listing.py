"""All objects of a kind out of a live cluster, page by page.

Pure over the protocol `Reader`, which `live` implements against the API server. One page is held at
a time; a page that has expired is asked for again without telling anybody twice of one object.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tfadmit_webhook import raw

# As many as kubectl asks for; half a megabyte of small objects.
LIMIT = 500
# The API server keeps a page for five minutes; a list that needs this often never ends.
_RESTARTS = 3


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of objects, as the API server names it."""

    name: str
    group: str
    version: str
    namespaced: bool = True

    @property
    def plural(self) -> str:
        """The resource in paths and roles."""
        return f"{self.name.lower()}s"


class ReadError(Exception):
    """A kind, or the rest of it, cannot be read; the message says why and what mends it."""


class StatusError(ReadError):
    """The API server refused, with an HTTP status and a sentence of its own."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"the API server answered {status}: {said}")
        self.status = status
        self.said = said


class ExpiredError(ReadError):
    """The page that was asked for is gone (410)."""


class UnreachableError(ReadError):
    """Nobody answers, or does not know who is asking."""


class Pages(Protocol):
    """Where pages come from."""

    def page(self, kind: Kind, *, namespace: str | None, limit: int, token: str) -> raw.JsonObject:
        """Ask for a page of a kind, of one namespace or of all.

        Raises:
            ReadError: there is none, and why.
        """


class Reader(Pages, Protocol):
    """Where pages and namespaces come from."""

    def namespace(self, name: str) -> raw.JsonObject:
        """Ask for a namespace, for its labels.

        Raises:
            ReadError: there is none, and why.
        """


def objects(reader: Pages, kind: Kind, *, namespace: str | None) -> Iterator[object]:
    """Give each object of a kind once; what is no object at all is given as it came.

    Raises:
        ReadError: the rest cannot be read.
    """
    seen: set[tuple[str, str]] = set()
    for items in _pages(reader, kind, namespace=namespace):
        for item in items:
            identity = _identity(item)
            if not identity[1] or identity not in seen:
                seen.add(identity)
                yield item


def _pages(reader: Pages, kind: Kind, *, namespace: str | None) -> Iterator[Sequence[object]]:
    token, restarts = "", 0
    while True:
        try:
            page = reader.page(kind, namespace=namespace, limit=LIMIT, token=token)
        except ExpiredError:
            restarts += 1
            if restarts > _RESTARTS:
                raise
            token = ""
            continue
        yield raw.sequence(page.get("items"))
        token = raw.text(raw.at(page, ("metadata", "continue")))
        if not token:
            return


def _identity(item: object) -> tuple[str, str]:
    metadata = raw.mapping(raw.mapping(item).get("metadata"))
    return raw.text(metadata.get("namespace")), raw.text(metadata.get("name"))
