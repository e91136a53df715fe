"""Files by HTTP: the only module that knows urllib. Proxies of the environment are heeded.

Not obstore's HTTP store: it escapes the `?` of a query and refuses answers without a length.
"""

import http.client
import string
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator

from tfadmit_transfer import fault, source, uri

_SECONDS = 60.0
_CHUNK = 1024 * 1024
# Too many requests, and two that name a moment that passes.
_PASSING = (408, 425, 429)


class HttpSource:
    """A file at an http:// or https:// address."""

    def __init__(self, where: uri.Uri) -> None:
        self._where = where

    @property
    def name(self) -> str:
        """Its address."""
        return str(self._where)

    def open(self, *, offset: int, version: str) -> source.Stream:
        """Read it from an offset on, if the server can and the file is still the same."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "tfadmit"}
        if offset and version:
            headers |= {"Range": f"bytes={offset}-", "If-Range": version}
        # What people may leave unescaped, and a request may not; escapes stay as they are.
        url = urllib.parse.quote(self.name, safe=string.punctuation)
        try:
            request = urllib.request.Request(url, headers=headers)  # noqa: S310 - parsed: http, https
            answer = urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310 - the same
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:  # the file has become shorter
                    return self.open(offset=0, version="")
                raise self._refused(error) from error
        except (ValueError, http.client.InvalidURL) as error:
            # Of this address, or of one to which the server leads.
            reason = getattr(error, "reason", None) or error
            raise fault.RefusedError(
                f"{self.name}: it leads to no address that can be asked ({reason}): is it right?"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise fault.PassingError(f"{self.name}: no connection ({reason})") from error
        begins = offset if answer.status == 206 else 0
        length = answer.headers.get("Content-Length", "")
        if begins and not answer.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
            answer.close()  # a part, and not the one that was asked for
            return self.open(offset=0, version="")
        return source.Stream(
            offset=begins,
            size=begins + int(length) if length.isascii() and length.isdigit() else None,
            # A weak tag tells no byte from another, so If-Range may not have it.
            version=_strong(answer.headers.get("ETag"))
            or answer.headers.get("Last-Modified")
            or "",
            chunks=self._chunks(answer),
        )

    def _chunks(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        with answer:
            while True:
                try:
                    chunk = answer.read(_CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    raise fault.PassingError(
                        f"{self.name}: the connection broke ({error})"
                    ) from error
                if not chunk:
                    return
                yield chunk

    def _refused(self, error: urllib.error.HTTPError) -> fault.TransferError:
        words = f"{self.name}: the server answers {error.code} {_line(error.reason)}"
        if error.code >= 500 or error.code in _PASSING:
            return fault.PassingError(words)
        if error.code in (401, 403):
            return fault.RefusedError(
                f"{words}: it wants credentials, and tfadmit fetches by HTTP without: use an "
                "address that is signed, or put the data into an object store"
            )
        return fault.RefusedError(f"{words}: is the address right?")


def _line(reason: object) -> str:
    return " ".join(str(reason).split())


def _strong(tag: str | None) -> str:
    return "" if not tag or tag.startswith("W/") else tag
