"""The HTTP application: reviews in, answers out, on one path per handler, and the probes.

Two channels for errors. What cannot be read as a review is an HTTP error with one line of text;
everything about the object, and any fault of ours, is an answer with HTTP 200 and the review's uid,
because the API server reads nothing else as a decision. A plain WSGI application without threads,
sockets or look-ups of its own; the only module that knows Flask.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from tfadmit_webhook import deadline, decision, jsontext, lookup, review
from tfadmit_webhook.decision import Decision
from tfadmit_webhook.handler import HANDLERS, Handler
from tfadmit_webhook.settings import Server

# WSGI environ: when the request arrived, on the application's clock, if the server knows it.
ARRIVED = "tfadmit.arrived"


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
    app = Flask(__name__, static_folder=None)
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
        app.add_url_rule(path, path, endpoint, methods=["POST"], provide_automatic_options=False)
    _add_error_pages(app, observer)
    return app


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

    def __call__(self) -> Response:
        arrived: float = request.environ.get(ARRIVED, self._clock())
        _check_content()
        patience = deadline.seconds(
            request.args.get("timeout"), default=self._server.default_timeout_seconds
        )
        remaining = deadline.remaining(arrived=arrived, patience=patience, clock=self._clock)
        if remaining() <= 0:
            # The API server has given up or is about to; others can still be answered in time.
            self._observer.shed("deadline")
            raise review.UnreadableError("the review waited for too long; ask again", status=503)
        # parse_form_data=False: a review is never a form, whatever its header says.
        admission = review.parse(request.get_data(cache=False, parse_form_data=False))
        result, body, fault = self._decide(admission, remaining)
        self._observer.decided(
            admission, result, hook=self._hook, seconds=self._clock() - arrived, fault=fault
        )
        return Response(body, mimetype="application/json")

    def _decide(
        self, admission: review.Request, remaining: Callable[[], float]
    ) -> tuple[Decision, bytes, Exception | None]:
        fault = None
        try:
            result = self._handler(admission, self._context_for(remaining))
            body = _dump(result, uid=admission.uid)
        except Exception as error:  # noqa: BLE001 - whatever it is, the API server needs an answer
            fault, result = error, decision.fault()
            body = _dump(result, uid=admission.uid)
        return result, body, fault


def _dump(result: Decision, *, uid: str) -> bytes:
    return jsontext.dump(review.render(result, uid=uid))


def _check_content() -> None:
    if request.mimetype != "application/json":
        stated = request.content_type or "nothing"
        raise review.UnreadableError(
            f"the content type must be application/json, the request says {stated}", status=415
        )
    if (encoding := request.headers.get("Content-Encoding", "identity").lower()) != "identity":
        raise review.UnreadableError(
            f"the body must not be encoded, the request says {encoding}", status=415
        )


def _add_probes(app: Flask, ready: Callable[[], Sequence[str]]) -> None:
    def healthz() -> Response:
        return _text("ok", status=200)

    def readyz() -> Response:
        failing = ready()
        return _text("\n".join(failing), status=503) if failing else _text("ok", status=200)

    for path, view in (("/healthz", healthz), ("/readyz", readyz)):
        app.add_url_rule(path, path, view, provide_automatic_options=False)


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
