"""The AdmissionReview format, `admission.k8s.io/v1`: bytes to a request, a decision to an answer.

This module knows the wire format and nothing of what is decided. A review that cannot be read
raises `UnreadableError`; the application turns that into an HTTP 4xx. Everything else is answered
as a review with the request's uid, as the API server demands: the answer echoes uid, apiVersion and
kind; patch and patchType come together or not at all.
"""

import base64
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfadmit_webhook import jsontext, raw
from tfadmit_webhook.decision import Decision

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_STATUS_REASONS = {403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable"}

# The API server takes 4,096 characters of warnings with one answer. Beyond, it cuts each at 256 and
# drops what is still too much, without a word.
MAX_WARNING = 256
_MAX_WARNINGS = 4096


class UnreadableError(Exception):
    """The body is no review that we can answer; `status` is the HTTP status that says so."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Request:
    """An admission request, null-safe; `object` and `old` are empty when the API sends null."""

    uid: str
    operation: str
    kind: str
    name: str
    namespace: str
    subresource: str
    user: str
    dry_run: bool
    object: raw.JsonObject
    old: raw.JsonObject


def parse(body: bytes) -> Request:
    """Read a review.

    Raises:
        UnreadableError: with a sentence that says what is wrong with the body.
    """
    review = _load(body)
    version, kind = review.get("apiVersion"), review.get("kind")
    if version != API_VERSION or kind != KIND:
        raise UnreadableError(
            f"expected apiVersion {API_VERSION} and kind {KIND}, got {version!r} and {kind!r}: "
            "set admissionReviewVersions: [v1] in the webhook configuration"
        )
    request = raw.mapping(review.get("request"))
    uid = raw.text(request.get("uid"))
    if not uid:
        raise UnreadableError("request.uid is missing: without it no answer can be matched")
    operation = raw.text(request.get("operation"))
    if not operation:
        raise UnreadableError("request.operation is missing")
    content = raw.mapping(request.get("object"))
    if not content and operation in ("CREATE", "UPDATE"):
        raise UnreadableError(f"request.object is missing in a {operation} request")
    return Request(
        uid=uid,
        operation=operation,
        kind=raw.text(raw.at(request, ("kind", "kind"))),
        name=raw.text(request.get("name")),
        namespace=raw.text(request.get("namespace")),
        subresource=raw.text(request.get("subResource")),
        user=raw.text(raw.at(request, ("userInfo", "username"))),
        dry_run=request.get("dryRun") is True,
        object=content,
        old=raw.mapping(request.get("oldObject")),
    )


def render(decision: Decision, *, uid: str) -> dict[str, Any]:
    """Write the answer to the request with this uid."""
    response: dict[str, Any] = {"uid": uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = {
            "code": decision.code,
            "reason": _STATUS_REASONS[decision.code],
            "message": decision.message,
        }
    if decision.allowed and decision.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(jsontext.dump(list(decision.patch))).decode("ascii")
    if decision.warnings:
        response["warnings"] = _within_limits(decision.warnings)
    if decision.audit:
        response["auditAnnotations"] = dict(decision.audit)
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _within_limits(warnings: Sequence[str]) -> list[str]:
    """Cut warnings that are too long, and leave out those that are too many, with a word."""
    cut = [
        text if len(text) <= MAX_WARNING else f"{text[: MAX_WARNING - 3]}..." for text in warnings
    ]
    if sum(map(len, cut)) <= _MAX_WARNINGS:
        return cut
    room = _MAX_WARNINGS - MAX_WARNING  # for the last one
    ends = itertools.accumulate(map(len, cut))
    kept = [text for text, end in zip(cut, ends, strict=True) if end <= room]
    return [*kept, f"... and {len(cut) - len(kept)} more: `tfadmit lint FILE` shows all"]


def _load(body: bytes) -> raw.JsonObject:
    try:
        review = jsontext.load(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"the body is not JSON: {error}") from error
    if not isinstance(review, dict):
        raise UnreadableError(f"the body is not a JSON object but a {type(review).__name__}")
    return review
