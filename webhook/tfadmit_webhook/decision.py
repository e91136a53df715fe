"""The outcomes of admission as values: what is answered, why, and with which reason code.

Nothing here knows HTTP or the AdmissionReview format (`review` renders decisions), and nothing
decides. A reason code is stable: it labels metrics and log lines.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict


class Reason(str, enum.Enum):
    """Why an object was answered as it was; never renamed, only added to."""

    # allowed
    MUTATED = "mutated"
    COMPLETE = "complete"  # already carries all that it should
    NOT_OURS = "not-ours"  # without the framework label
    OPTED_OUT = "opted-out"
    MIRROR_POD = "mirror-pod"
    OTHER_OPERATION = "other-operation"
    BEING_DELETED = "being-deleted"
    SPEC_UNCHANGED = "spec-unchanged"
    CONFORMS = "conforms"
    UNJUDGED = "unjudged"  # what judging it takes could not be looked up
    NOT_SHAPED = "not-shaped"  # a JobSet from before us; it cannot be changed any more
    # refused: the object, or what it refers to
    NO_CLUSTER = "no-cluster"  # nothing says which tasks there are
    JOBSET_MISSING = "jobset-missing"
    JOB_MISSING = "job-missing"
    OTHER_JOBSET = "other-jobset"  # of the same name, with another uid
    NOT_A_MEMBER = "not-a-member"
    INDEX_MISSING = "index-missing"
    INDEX_BEYOND_CLUSTER = "index-beyond-cluster"
    CLUSTER_INVALID = "cluster-invalid"
    ANNOTATION_INVALID = "annotation-invalid"
    POLICY_VIOLATED = "policy-violated"
    CANNOT_FOLLOW = "cannot-follow"  # roles whose number something else has fixed
    # refused for now
    LOOKUP_FAILED = "lookup-failed"
    # a fault of ours
    FAULT = "fault"


class _Place(TypedDict):
    op: Literal["add", "replace", "remove"]
    path: str


class Operation(_Place, total=False):
    """One operation of a JSON patch (RFC 6902); only `remove` has no value."""

    value: Any


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why an object cannot be admitted: a value that pure functions return in place of a result."""

    reason: Reason
    message: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The answer to one admission request."""

    allowed: bool
    reason: Reason
    message: str = ""
    code: int = 200
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    audit: tuple[tuple[str, str], ...] = ()
    violations: tuple[tuple[str, str], ...] = ()
    """Identifier and level of each violated rule, once per violation; for the metrics."""


def allow(reason: Reason, *, warnings: Sequence[str] = ()) -> Decision:
    """Let the object pass as it is."""
    return Decision(allowed=True, reason=reason, warnings=warnings)


def patched(patch: Sequence[Operation], *, warnings: Sequence[str] = ()) -> Decision:
    """Let the object pass with changes; an empty patch says that nothing was missing."""
    reason = Reason.MUTATED if patch else Reason.COMPLETE
    return Decision(allowed=True, reason=reason, patch=patch, warnings=warnings)


def refuse(refusal: Refusal, *, warnings: Sequence[str] = ()) -> Decision:
    """Refuse the object. 403 is what Kubernetes itself answers for a denied admission."""
    # A look-up that failed may succeed at the next try; 503 tells the caller so.
    code = 503 if refusal.reason is Reason.LOOKUP_FAILED else 403
    return Decision(
        allowed=False,
        reason=refusal.reason,
        message=refusal.message,
        code=code,
        warnings=warnings,
    )


def fault() -> Decision:
    """Refuse because of a fault of ours; its traceback goes to the log, never to the user."""
    return Decision(
        allowed=False,
        reason=Reason.FAULT,
        message="tfadmit failed to judge this object; its log has the traceback under this uid",
        code=500,
    )
