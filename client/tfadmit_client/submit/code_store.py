"""Large code in an object store, by what the transfer component has for it. I/O.

Credentials as `tfadmit pull` takes them: those of the environment, else the Secret that the runtime
names, where the user may read it.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tfadmit_client import fault
from tfadmit_client.jobs import read
from tfadmit_client.pull import saved_place
from tfadmit_client.submit import sending
from tfadmit_transfer import credentials, uri
from tfadmit_transfer import fault as transfer_fault

# Small beside a part, by which the store counts.
_CHUNK = 256 * 1024

T = TypeVar("T")


def opened(
    cluster: read.Cluster,
    base: str,
    *,
    namespace: str,
    secret: str,
    environ: Mapping[str, str],
    bar: Callable[[str], None] | None = None,
) -> "Below":
    """Open the store of an address; `bar` draws how far uploads are.

    Raises:
        ClientError: it cannot be opened.
    """
    place = saved_place.readable(
        cluster, namespace=namespace, secret=secret, base=base, environ=environ
    )
    return Below(place, bar=bar)


class Below:
    """Objects below an address: a `submit.code.CodeStore`."""

    def __init__(
        self, place: saved_place.Place, *, bar: Callable[[str], None] | None = None
    ) -> None:
        try:
            from tfadmit_transfer import store, store_answer  # noqa: PLC0415 - large code only
        except ModuleNotFoundError as error:
            raise fault.ClientError(
                "code of this size goes to an object store: pip install 'tfadmit[client,s3]'"
            ) from error
        self._note = place.note
        self._bar = bar
        self._absent = store_answer.AbsentError
        self._store = self._do(
            lambda: store.open_store(
                uri.output(place.bases[0]), environ=place.environ, mend=credentials.BY_HAND
            )
        )

    def has(self, name: str) -> bool:
        """Whether there is an object."""
        try:
            self._do(lambda: self._store.size(name))
        except _AbsentError:
            return False
        return True

    def write(self, name: str, content: bytes) -> None:
        """Write an object; it appears once it is whole."""
        size = len(content)
        if self._bar is None:
            self._do(lambda: self._store.upload(name, [content], size=size))
            return
        chunks = (content[at : at + _CHUNK] for at in range(0, size, _CHUNK))
        with sending.shown("code", total=size, bar=self._bar) as sent:
            self._do(lambda: self._store.upload(name, chunks, size=size, sent=sent))

    def _do(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except self._absent as error:
            raise _AbsentError(str(error)) from error
        except transfer_fault.PassingError as error:
            raise fault.ClusterError(self._noted(error)) from error
        except transfer_fault.TransferError as error:
            raise fault.ClientError(self._noted(error)) from error

    def _noted(self, error: Exception) -> str:
        return f"{error}; {self._note}" if self._note else str(error)


class _AbsentError(fault.ClientError):
    """There is no such object."""
