"""Objects of a store: what is asked of obstore, whose exceptions end here.

How a store is reached is for `backend`. Retries of single requests are obstore's; whether an
operation is tried again is decided above. Every sentence names the address and the credential.
"""

import concurrent.futures
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import obstore
from obstore import exceptions as obstore_exceptions

from tfadmit_transfer import backend, credentials, fault, source, store_answer, uri

# Parts of this size; S3 allows 10,000 of them, so larger objects get larger parts.
_PART = 8 * 1024 * 1024
_MAX_PARTS = 9_000
# How much of one upload is in memory; with four at a time, 128 MiB.
_IN_FLIGHT = 32 * 1024 * 1024
# Where somebody looks on: the least that S3 takes, two at a time, so that the count moves.
_WATCHED_PART = 5 * 1024 * 1024
_WATCHED_IN_FLIGHT = 2 * _WATCHED_PART
# Deletions at a time where each is a request.
_DELETES = 16
# S3 copies objects of up to 5 GiB in one request.
_MAX_COPY = 5 * 1024**3
_ERRORS = (obstore_exceptions.BaseError, OSError, ValueError)
# What pyo3 makes of a panic is no Exception, and cannot be imported. It must not end the sidecar.
_PANIC = "PanicException"

T = TypeVar("T")
AbsentError = store_answer.AbsentError


@dataclass(frozen=True, kw_only=True)
class Object:
    """An object of a listing."""

    key: str
    size: int
    modified: float = 0.0
    """When it was written, in seconds since 1970 by the clock of the store."""


class Store:
    """The objects below one address."""

    def __init__(
        self,
        *,
        where: uri.Uri,
        backend: Any,  # noqa: ANN401 - obstore's union of stores
        environ: Mapping[str, str],
        mend: str,
    ) -> None:
        self._where = where
        self._backend = backend
        self._environ = environ
        self._mend = mend
        # The root of a folder is the backend's.
        self._base = "" if where.scheme in uri.MOUNTED else where.path.strip("/")

    def name(self, key: str) -> str:
        """Give the address of an object."""
        return f"{str(self._where).rstrip('/')}/{key}" if key else str(self._where)

    def read(self, key: str) -> bytes | None:
        """Give the content of a small object, None when it is not there."""
        try:
            return self._do(key, lambda: bytes(obstore.get(self._backend, self._full(key)).bytes()))
        except store_answer.AbsentError:
            return None

    def size(self, key: str) -> int:
        """Give the size of an object.

        Raises:
            TransferError: it is not there, or cannot be read.
        """
        # Not HEAD: its answer has no body, and so no word of what is wrong.
        found = self._do(key, lambda: obstore.get(self._backend, self._full(key)))
        return int(found.meta["size"])

    def write(self, key: str, content: bytes) -> None:
        """Write a small object; readers see the old or the new one."""
        self._do(key, lambda: obstore.put(self._backend, self._full(key), content))

    def upload(
        self,
        key: str,
        chunks: Iterable[bytes],
        *,
        size: int,
        sent: Callable[[int], None] | None = None,
    ) -> None:
        """Write an object of this size; it appears once it is whole.

        `sent` is told how many bytes have arrived at least, of objects of more than one part.
        """
        part = max(_WATCHED_PART if sent else _PART, -(-size // _MAX_PARTS))
        if size <= part:
            content = b"".join(chunks)
            self._do(key, lambda: obstore.put(self._backend, self._full(key), content))
            return
        at_once = max(1, (_WATCHED_IN_FLIGHT if sent else _IN_FLIGHT) // part)
        counted = _counted(chunks, sent, on_the_way=at_once * part) if sent else iter(chunks)
        self._do(
            key,
            lambda: obstore.put(
                self._backend,
                self._full(key),
                counted,
                use_multipart=True,
                chunk_size=part,
                max_concurrency=at_once,
            ),
        )

    def copy(self, origin: str, target: str, *, size: int) -> None:
        """Copy within the store; what it cannot copy itself goes through this machine."""
        # In a folder obstore would make a hard link, which not every volume has.
        if self._where.scheme in uri.MOUNTED or (self._where.scheme == "s3" and size > _MAX_COPY):
            chunks = self.open(origin, offset=0, version="").chunks
            self.upload(target, chunks, size=size)
            return
        self._do(
            target, lambda: obstore.copy(self._backend, self._full(origin), self._full(target))
        )

    def remove(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are not there do not matter."""
        if self._where.scheme == "s3" and keys:
            # A thousand with each request, and S3 does not mind those that are not there.
            paths = [self._full(key) for key in keys]
            self._do(keys[0], lambda: obstore.delete(self._backend, paths))
            return
        with concurrent.futures.ThreadPoolExecutor(_DELETES) as pool:
            for _ in pool.map(self._remove, keys):
                pass

    def _remove(self, key: str) -> None:
        with contextlib.suppress(store_answer.AbsentError):
            self._do(key, lambda: obstore.delete(self._backend, self._full(key)))

    def listing(self, prefix: str = "") -> list[Object]:
        """Give all objects below a prefix, which ends at a slash; without markers of folders."""
        return _files(self._do(prefix, lambda: list(self._listing(prefix))))

    def origin(self, key: str) -> "ObjectSource":
        """Give an object to download."""
        return ObjectSource(store=self, key=key)

    def open(self, key: str, *, offset: int, version: str) -> source.Stream:
        """Read an object from an offset on, as `source.Source` has it."""
        options: dict[str, Any] = {}
        if offset and version:
            options = {"range": {"offset": offset}, "if_match": version}
        try:
            found = self._do(
                key,
                lambda: obstore.get(self._backend, self._full(key), options=options or None),  # type: ignore[arg-type]
            )
        except _OtherVersionError:
            return self.open(key, offset=0, version="")
        return source.Stream(
            offset=found.range[0],
            size=found.meta["size"],
            version=found.meta["e_tag"] or "",
            chunks=self._chunks(key, found),
        )

    def _chunks(self, key: str, found: Any) -> Iterator[bytes]:  # noqa: ANN401 - obstore names its type in stubs only
        stream = iter(found.stream(min_chunk_size=1024 * 1024))
        while True:
            chunk = self._do(key, lambda: next(stream, None))
            if chunk is None:
                return
            yield bytes(chunk)

    def _listing(self, prefix: str) -> Iterator[Object]:
        cut = len(self._base) + 1 if self._base else 0
        for page in obstore.list(self._backend, prefix=self._full(prefix.rstrip("/"))):
            for item in page:
                yield Object(
                    key=item["path"][cut:],
                    size=item["size"],
                    modified=item["last_modified"].timestamp(),
                )

    def _full(self, key: str) -> str:
        return "/".join(part for part in (self._base, key) if part)

    def _do(self, key: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except fault.TransferError:
            raise
        except obstore_exceptions.PreconditionError as error:
            raise _OtherVersionError(self.name(key)) from error
        except BaseException as error:
            if not isinstance(error, _ERRORS) and type(error).__name__ != _PANIC:
                raise
            raise store_answer.fault_of(
                error,
                name=self.name(key),
                where=self._where,
                environ=self._environ,
                mend=self._mend,
            ) from error


def _counted(
    chunks: Iterable[bytes], sent: Callable[[int], None], *, on_the_way: int
) -> Iterator[bytes]:
    """Tell what has arrived: obstore asks for more when no more than so much is on the way."""
    taken = 0
    for chunk in chunks:
        yield chunk
        taken += len(chunk)
        sent(max(0, taken - on_the_way))


def _files(found: Sequence[Object]) -> list[Object]:
    """Leave out the empty objects by which consoles and tools mark folders.

    Their names end at a slash, which obstore takes away.
    """
    folders = {""}
    for item in found:
        folders.update(map(str, PurePosixPath(item.key).parents))
    return [item for item in found if item.size or item.key not in folders]


class ObjectSource:
    """An object of a store, to download."""

    def __init__(self, *, store: Store, key: str) -> None:
        self._store = store
        self._key = key

    @property
    def name(self) -> str:
        """Its address."""
        return self._store.name(self._key)

    def open(self, *, offset: int, version: str) -> source.Stream:
        """Read it from an offset on."""
        return self._store.open(self._key, offset=offset, version=version)


class _OtherVersionError(fault.PassingError):
    """The object has been replaced meanwhile."""


def open_store(
    where: uri.Uri,
    *,
    environ: Mapping[str, str],
    mount: Path | None = None,
    mend: str = credentials.IN_POD,
) -> Store:
    """Open the store of an address; nothing is asked of it yet.

    `mount` is where a volume (`pvc://`, `file://`) is in this container, `mend` what mends a
    lacking credential.

    Raises:
        RefusedError: its options make no sense.
    """
    try:
        made = backend.make(where, environ=environ, mount=mount)
    except (obstore_exceptions.BaseError, ValueError) as error:
        raise store_answer.unusable(error, where=where, environ=environ, mend=mend) from error
    except OSError as error:
        raise store_answer.fault_of(
            error, name=str(where), where=where, environ=environ, mend=mend
        ) from error
    return Store(where=where, backend=made, environ=environ, mend=mend)
