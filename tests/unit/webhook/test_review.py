import base64
import json

import pytest

from builders import body, make_pod, make_review
from tfadmit_webhook import decision, review
from tfadmit_webhook.decision import Reason, Refusal


def without(name):
    content = make_review(make_pod())
    del content["request"][name]
    return body(content)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not JSON"),
        (body(make_review(make_pod()))[:-20], "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"null", "not a JSON object but a NoneType"),
        (b"[]", "not a JSON object but a list"),
        (b"{}", "expected apiVersion admission.k8s.io/v1"),
        (
            body(make_review(make_pod()) | {"apiVersion": "admission.k8s.io/v1beta1"}),
            "admission.k8s.io/v1beta1.*admissionReviewVersions",
        ),
        (body(make_review(make_pod()) | {"kind": "Review"}), "Review"),
        (body(make_review(make_pod()) | {"request": None}), "request.uid"),
        (without("uid"), "request.uid"),
        (without("operation"), "request.operation"),
        (without("object"), "request.object is missing in a CREATE request"),
        (body(make_review(None)), "request.object is missing in a CREATE request"),
    ],
)
def test_a_body_that_is_no_review_is_refused_with_the_reason(text, why):
    with pytest.raises(review.UnreadableError, match=why):
        review.parse(text)


def test_a_deletion_has_no_object():
    parsed = review.parse(body(make_review(None, operation="DELETE", old=make_pod())))
    assert parsed.object == {}
    assert parsed.old["kind"] == "Pod"


def test_an_answer_echoes_the_uid_and_the_version():
    answer = review.render(decision.allow(Reason.NOT_OURS), uid="u1")
    assert answer == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u1", "allowed": True},
    }


def test_a_patch_comes_with_its_type():
    operations = [decision.Operation(op="add", path="/a", value="ü")]
    response = review.render(decision.patched(operations), uid="u1")["response"]
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == operations


def test_an_empty_patch_is_left_out():
    response = review.render(decision.patched([]), uid="u1")["response"]
    assert response == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize(
    ("reason", "code", "word"),
    [
        (Reason.JOBSET_MISSING, 403, "Forbidden"),
        (Reason.LOOKUP_FAILED, 503, "ServiceUnavailable"),
    ],
)
def test_a_refusal_carries_code_reason_and_message(reason, code, word):
    refused = decision.refuse(Refusal(reason=reason, message="why"))
    response = review.render(refused, uid="u1")["response"]
    assert response == {
        "uid": "u1",
        "allowed": False,
        "status": {"code": code, "reason": word, "message": "why"},
    }


def test_a_fault_is_an_answer_with_code_500():
    response = review.render(decision.fault(), uid="u1")["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 500


def rendered(*warnings):
    return review.render(decision.allow(Reason.NOT_OURS, warnings=warnings), uid="u1")["response"][
        "warnings"
    ]


def test_a_warning_keeps_within_the_api_servers_limit():
    (cut,) = rendered("x" * 300)
    assert (len(cut), cut[-5:]) == (256, "xx...")
    assert rendered("x" * 256) == ["x" * 256]


def test_warnings_together_keep_within_the_api_servers_limit():
    full = [f"{number:0256}" for number in range(16)]
    assert rendered(*full) == full
    *kept, last = rendered(*full, "one more")
    assert kept == full[:15]
    assert last == "... and 2 more: `tfadmit lint FILE` shows all"
    assert sum(map(len, rendered(*["x" * 300] * 1000))) <= 4096
