"""The HTTP application: reviews in, answers out, on one path per handler, and the probes.

Two channels for errors. What cannot be read as a review is an HTTP error with one line of text;
everything about the object, and any fault of ours, is an answer with HTTP 200 and the review's uid,
because the API server reads nothing else as a decision. A plain WSGI application without threads,
sockets or look-ups of its own; the only module that knows Flask.

Reviews as API servers send them take a short way past Flask's request cycle, which costs twice what
judging them does. Whatever is odd about a request goes Flask's way, and so does every HTTP error.
"""

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import parse_qs

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from tfadmit_webhook import deadline, decision, jsontext, lookup, patience, review, wsgi
from tfadmit_webhook.decision import Decision
from tfadmit_webhook.handler import HANDLERS, Handler
from tfadmit_webhook.settings import Server

# WSGI environ: when the request arrived, on the application's clock, if the server knows it.
ARRIVED = "tfadmit.arrived"
# WSGI environ: true when the caller cannot wait. The application then raises `wsgi.LaterError`
# where it would; the same environ is given to it again, in a thread, without this key.
AT_ONCE = "tfadmit.at_once"
# WSGI environ: what the short way raised, for Flask to make a page of.
_RAISED = "tfadmit.raised"
# WSGI environ: a review that was put off, and its context.
_PUT_OFF = "tfadmit.put_off"
_JSON = "application/json"


class Observer(Protocol):
    """Who is told what happened."""

    def decided(
        self,
        request: review.Request,
        decision: Decision,
        *,
        hook: str,
        seconds: float,
        fault: BaseException | None = None,
    ) -> None:
        """Take note of a decision."""

    def rejected(self, *, status: int, message: str, path: str) -> None:
        """Take note of a request that was no review."""

    def shed(self, cause: str) -> None:
        """Take note of what was sent away because there was too much of it."""


ContextFactory = Callable[[Callable[[], float]], lookup.Context]


def create_app(
    *,
    context_for: ContextFactory,
    ready: Callable[[], Sequence[str]],
    observer: Observer,
    server: Server,
    clock: Callable[[], float] = time.monotonic,
) -> Flask:
    """Build the application.

    Args:
        context_for: makes a handler's context out of the function that tells the time left.
        ready: gives one line for each reason not to be sent requests.
        observer: is told of every decision and refusal.
        server: the limits of requests.
        clock: seconds that only grow.
    """
    app = _App(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = server.max_body_bytes
    app.url_map.merge_slashes = False  # a redirect of a POST helps nobody
    _add_probes(app, ready)
    for path, handler in HANDLERS.items():
        endpoint = _Endpoint(
            hook=path.strip("/").replace("/", "-"),
            handler=handler,
            context_for=context_for,
            observer=observer,
            server=server,
            clock=clock,
        )
        app.endpoints[path] = endpoint
        app.add_url_rule(
            path, path, endpoint.view, methods=["POST"], provide_automatic_options=False
        )
    _add_error_pages(app, observer)
    return app


class _App(Flask):
    """Flask, with a short way for reviews."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - Flask's
        super().__init__(*arguments, **options)
        self.endpoints: dict[str, _Endpoint] = {}

    def wsgi_app(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer one request."""
        endpoint = self.endpoints.get(environ["PATH_INFO"])
        if endpoint is None or not endpoint.is_plain(environ):
            if environ.get(AT_ONCE):
                raise wsgi.LaterError
            return super().wsgi_app(environ, start_response)
        try:
            length = int(environ["CONTENT_LENGTH"])
            body = endpoint.answer(environ, lambda: environ["wsgi.input"].read(length))
        except wsgi.LaterError:
            raise
        except Exception as error:  # noqa: BLE001 - Flask's handlers know what to say
            environ[_RAISED] = error
            return super().wsgi_app(environ, start_response)
        start_response("200 OK", [("Content-Type", _JSON), ("Content-Length", str(len(body)))])
        return [body]


class _Endpoint:
    """One webhook path."""

    def __init__(
        self,
        *,
        hook: str,
        handler: Handler,
        context_for: ContextFactory,
        observer: Observer,
        server: Server,
        clock: Callable[[], float],
    ) -> None:
        self._hook = hook
        self._handler = handler
        self._context_for = context_for
        self._observer = observer
        self._server = server
        self._clock = clock

    def is_plain(self, environ: dict[str, Any]) -> bool:
        """Whether a request is such as API servers send, so that Flask would find no fault."""
        length = environ.get("CONTENT_LENGTH", "")
        return (
            environ["REQUEST_METHOD"] == "POST"
            and environ.get("CONTENT_TYPE") == _JSON
            and "HTTP_CONTENT_ENCODING" not in environ
            and length.isascii()
            and length.isdigit()
            and len(length) < 20
            and int(length) <= self._server.max_body_bytes
        )

    def view(self) -> Response:
        """Answer the request that Flask has taken."""
        if raised := request.environ.get(_RAISED):
            raise raised
        _check_content()
        # parse_form_data=False: a review is never a form, whatever its header says.
        body = self.answer(
            request.environ, lambda: request.get_data(cache=False, parse_form_data=False)
        )
        return Response(body, mimetype=_JSON)

    def answer(self, environ: dict[str, Any], read: Callable[[], bytes]) -> bytes:
        """Answer a review; `read` gives its body."""
        arrived: float = environ.get(ARRIVED, self._clock())
        remaining = self._remaining(environ, arrived=arrived)
        if put_off := environ.pop(_PUT_OFF, None):
            admission, context = put_off
            context.reader.wait()
        else:
            admission = review.parse(read())
            context = self._context_for(remaining)
        if environ.get(AT_ONCE):
            context = replace(context, reader=patience.Reader(context.reader))
        try:
            result, body, fault = self._decide(admission, context)
        except patience.WouldWaitError:
            environ[_PUT_OFF] = admission, context
            raise wsgi.LaterError from None
        self._observer.decided(
            admission, result, hook=self._hook, seconds=self._clock() - arrived, fault=fault
        )
        return body

    def _remaining(self, environ: dict[str, Any], *, arrived: float) -> Callable[[], float]:
        seconds = _seconds(
            environ.get("QUERY_STRING", ""), default=self._server.default_timeout_seconds
        )
        remaining = deadline.remaining(arrived=arrived, patience=seconds, clock=self._clock)
        if remaining() <= 0:
            # The API server has given up or is about to; others can still be answered in time.
            self._observer.shed("deadline")
            raise review.UnreadableError("the review waited for too long; ask again", status=503)
        return remaining

    def _decide(
        self, admission: review.Request, context: lookup.Context
    ) -> tuple[Decision, bytes, Exception | None]:
        fault = None
        try:
            result = self._handler(admission, context)
            body = _dump(result, uid=admission.uid)
        except patience.WouldWaitError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the API server needs an answer
            fault, result = error, decision.fault()
            body = _dump(result, uid=admission.uid)
        return result, body, fault


# An API server asks with the same few queries all its life.
@functools.lru_cache(maxsize=64)
def _seconds(query: str, *, default: float) -> float:
    stated = parse_qs(query, errors="replace").get("timeout", [None])
    return deadline.seconds(stated[0], default=default)


def _dump(result: Decision, *, uid: str) -> bytes:
    return jsontext.dump(review.render(result, uid=uid))


def _check_content() -> None:
    if request.mimetype != _JSON:
        stated = request.content_type or "nothing"
        raise review.UnreadableError(
            f"the content type must be application/json, the request says {stated}", status=415
        )
    if (encoding := request.headers.get("Content-Encoding", "identity").lower()) != "identity":
        raise review.UnreadableError(
            f"the body must not be encoded, the request says {encoding}", status=415
        )


def page(failing: Callable[[], Sequence[str]]) -> wsgi.Application:
    """Make a page of its own that says ok, or what is not."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return _state(failing())(environ, start_response)

    return answer


def _add_probes(app: Flask, ready: Callable[[], Sequence[str]]) -> None:
    for path, failing in (("/healthz", tuple), ("/readyz", ready)):
        view = functools.partial(lambda failing: _state(failing()), failing)
        app.add_url_rule(path, path, view, provide_automatic_options=False)


def _state(failing: Sequence[str]) -> Response:
    return _text("\n".join(failing), status=503) if failing else _text("ok", status=200)


def _add_error_pages(app: Flask, observer: Observer) -> None:
    def refuse(status: int, message: str) -> Response:
        # What is quoted of a header may hold bytes that are no UTF-8, as lone surrogates.
        line = " ".join(message.split()).encode("utf-8", "backslashreplace").decode()
        observer.rejected(status=status, message=line, path=request.path)
        return _text(line, status=status)

    def unreadable(error: review.UnreadableError) -> Response:
        response = refuse(error.status, str(error))
        if error.status == 503:
            response.headers["Retry-After"] = "1"
        return response

    def http(error: HTTPException) -> Response:
        response = refuse(error.code or 500, error.description or error.name)
        if allowed := getattr(error, "valid_methods", None):
            response.headers["Allow"] = ", ".join(sorted(allowed))
        return response

    def fault(error: Exception) -> Response:
        app.logger.error("fault outside of a review", exc_info=error, extra={"fields": {}})
        return refuse(500, "tfadmit failed to read this request; its log has the traceback")

    app.register_error_handler(review.UnreadableError, unreadable)
    app.register_error_handler(HTTPException, http)
    app.register_error_handler(Exception, fault)


def _text(text: str, *, status: int) -> Response:
    return Response(f"{text}\n", status=status, mimetype="text/plain")
