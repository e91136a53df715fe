"""The HTTP application through Flask's client: what is answered to what."""

import io
import json
from types import SimpleNamespace

import pytest

import admission
import builders
from tfadmit_webhook import app, facts, wsgi
from tfadmit_webhook.settings import Server

LIMIT = Server().max_body_bytes


class Observer:
    """Remembers what it is told."""

    def __init__(self):
        self.decisions, self.rejections, self.causes = [], [], []

    def decided(self, request, decision, *, hook, seconds, fault=None):
        self.decisions.append(
            SimpleNamespace(
                request=request, decision=decision, hook=hook, seconds=seconds, fault=fault
            )
        )

    def rejected(self, *, status, message, path):
        self.rejections.append((status, message, path))

    def shed(self, cause):
        self.causes.append(cause)


class Web:
    """An application with its client; `left` is what handlers were told about the time left."""

    def __init__(self, *objects, reader=None, ready=(), clock=lambda: 0.0):
        self.observer = Observer()
        self.left: list[float] = []
        given = admission.context(*(objects or (builders.make_jobset(),)), reader=reader)

        def context_for(remaining):
            self.left.append(remaining())
            return given

        application = app.create_app(
            context_for=context_for,
            ready=lambda: ready,
            observer=self.observer,
            server=Server(),
            clock=clock,
        )
        self.application = application
        self.client = application.test_client()

    def post(self, data, path="/mutate/pods", content_type="application/json", **options):
        return self.client.post(path, data=data, content_type=content_type, **options)

    def review(self, content, path="/mutate/pods", **request):
        answer = self.post(builders.body(builders.make_review(content, **request)), path)
        assert answer.status_code == 200, answer.text
        assert answer.content_type == "application/json"
        document = json.loads(answer.data)
        assert document["apiVersion"] == "admission.k8s.io/v1"
        assert document["kind"] == "AdmissionReview"
        return document["response"]


@pytest.fixture
def web():
    return Web()


def assert_refused(web, answer, status):
    """An HTTP error is one line of plain text, told to the observer."""
    assert answer.status_code == status
    assert answer.content_type.startswith("text/plain")
    assert answer.text.endswith("\n")
    assert answer.text.count("\n") == 1
    assert "<" not in answer.text
    assert "Traceback" not in answer.text
    assert web.observer.rejections == [(status, answer.text.rstrip("\n"), answer.request.path)]


def test_a_pod_is_answered_with_its_patch_and_uid(web):
    response = web.review(builders.make_pod(index=1), uid="the-uid")
    assert response["uid"] == "the-uid"
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    (told,) = web.observer.decisions
    assert (told.hook, told.decision.reason.value) == ("mutate-pods", "mutated")


def test_a_refused_object_is_http_200_with_its_code(web):
    response = web.review(builders.make_pod(jobset="gone"))
    assert response["allowed"] is False
    assert response["status"]["code"] == 403
    assert "JobSet team/gone does not exist" in response["status"]["message"]
    assert "patch" not in response


@pytest.mark.parametrize("path", ["/mutate/runtimes", "/validate/runtimes"])
def test_every_handler_has_its_path(web, path):
    assert web.review(builders.make_runtime(), path)["allowed"] is True
    assert web.observer.decisions[0].hook == path.strip("/").replace("/", "-")


def test_a_failing_lookup_is_a_refusal_for_now():
    class Reader(facts.StaticReader):
        def live_jobset(self, *, namespace, name, timeout):
            raise facts.LookupFailedError("nobody answers")

    response = Web(reader=Reader()).review(builders.make_pod())
    assert (response["allowed"], response["status"]["code"]) == (False, 503)


def test_a_fault_in_a_handler_is_answered_with_the_uid_and_logged():
    class Reader(facts.StaticReader):
        def cached_jobset(self, *, namespace, name):
            raise ZeroDivisionError("secret detail")

    web = Web(reader=Reader())
    response = web.review(builders.make_pod(), uid="u-9")
    assert response["uid"] == "u-9"
    assert response["allowed"] is False
    assert response["status"]["code"] == 500
    assert "secret detail" not in json.dumps(response)
    assert isinstance(web.observer.decisions[0].fault, ZeroDivisionError)


def test_a_fault_outside_of_handlers_is_one_line_without_a_traceback(web, monkeypatch):
    def broken(_body):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("tfadmit_webhook.review.parse", broken)
    answer = web.post(b"{}")
    assert_refused(web, answer, 500)
    assert "secret detail" not in answer.text


def without(review, key):
    del review["request"][key]
    return review


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(builders.body(without(builders.make_review({}), "uid")), id="no uid"),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":null}}',
            id="null uid",
        ),
        pytest.param(builders.body(without(builders.make_review({}), "object")), id="no object"),
        pytest.param(builders.body(builders.make_review(None)), id="null object"),
        pytest.param(
            builders.body({**builders.make_review({}), "apiVersion": "admission.k8s.io/v1beta1"}),
            id="v1beta1",
        ),
        pytest.param(builders.body({**builders.make_review({}), "kind": "Pod"}), id="other kind"),
        pytest.param(builders.body({**builders.make_review({}), "request": None}), id="no request"),
        pytest.param(builders.body(builders.make_review({}))[:-9], id="truncated"),
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
        pytest.param(b'{"a":' * 200_000, id="nested without end"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="nested deep"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
    ],
)
def test_what_is_no_review_is_http_400(web, body):
    assert_refused(web, web.post(body), 400)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        'application/json; charset="utf-8"; v=1',
    ],
)
def test_json_is_accepted_with_and_without_parameters(web, content_type):
    body = builders.body(builders.make_review(builders.make_pod()))
    assert web.post(body, content_type=content_type).status_code == 200


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/yaml",
        "application/jsonp",
        "application/json,text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "; charset=utf-8",
    ],
)
def test_any_other_content_type_is_http_415(web, content_type):
    body = builders.body(builders.make_review(builders.make_pod()))
    assert_refused(web, web.post(body, content_type=content_type), 415)


def test_a_header_that_is_no_utf_8_is_quoted_and_not_a_fault(web):
    # as the server decodes the bytes "text/\xff" of a header
    answer = web.post(b"x", environ_overrides={"CONTENT_TYPE": "text/\udcff"})
    assert_refused(web, answer, 415)
    assert "text/\\udcff" in answer.text


def test_an_encoded_body_is_http_415(web):
    assert_refused(web, web.post(b"x", headers={"Content-Encoding": "gzip"}), 415)


def test_a_body_above_the_limit_is_http_413(web):
    assert_refused(web, web.post(b"x" * (LIMIT + 1)), 413)


def test_a_body_at_the_limit_is_read(web):
    body = builders.body(builders.make_review(builders.make_pod()))
    assert web.post(body.ljust(LIMIT)).status_code == 200


def test_a_long_body_without_a_length_is_http_413(web):
    answer = web.post(
        None,
        input_stream=io.BytesIO(b"x" * (LIMIT + 1)),
        environ_overrides={"wsgi.input_terminated": True},
    )
    assert_refused(web, answer, 413)


def test_a_length_that_promises_too_much_is_http_400(web):
    assert_refused(web, web.post(b"{}", environ_overrides={"CONTENT_LENGTH": "9"}), 400)


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "patch", "options"])
def test_only_post_is_a_review(web, method):
    answer = getattr(web.client, method)("/mutate/pods")
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/", "/mutate", "/mutate/pods/", "//mutate/pods", "/static/x"])
def test_other_paths_are_http_404(web, path):
    answer = web.post(b"{}", path)
    assert answer.status_code == 404
    assert answer.content_type.startswith("text/plain")


NULLS = {
    "metadata": {"metadata": None},
    "spec": {"spec": None},
    "containers": {"spec": {"containers": None}},
    "a container": {"spec": {"containers": [None]}},
    "env": {"spec": {"containers": [{"name": "node", "env": None}]}},
    "an env entry": {"spec": {"containers": [{"name": "node", "env": [None]}]}},
    "resources": {"spec": {"containers": [{"name": "node", "resources": None}]}},
    "init containers": {"spec": {"containers": [{"name": "node"}], "initContainers": None}},
}


@pytest.mark.parametrize("change", NULLS.values(), ids=NULLS)
def test_null_is_never_a_fault(web, change):
    response = web.review({**builders.make_pod(), **change})
    assert response["allowed"] is True or response["status"]["code"] == 403
    assert web.observer.decisions[0].fault is None


@pytest.mark.parametrize("field", ["labels", "annotations", "ownerReferences", "generateName"])
def test_null_metadata_is_never_a_fault(web, field):
    pod = builders.make_pod()
    pod["metadata"][field] = None
    web.review(pod)
    assert web.observer.decisions[0].fault is None


def test_odd_characters_are_answered(web):
    pod = builders.make_pod(jobset="\ud800\n<b>")
    assert web.review(pod, uid="\ud800")["allowed"] is False


def test_the_patience_of_the_api_server_reaches_the_handler():
    web = Web()
    body = builders.body(builders.make_review(builders.make_pod()))
    for query in ("?timeout=4s", "?timeout=nonsense", "", "?timeout=2s&timeout=9s"):
        assert web.post(body, f"/mutate/pods{query}").status_code == 200
    assert web.left == [3.75, 9.75, 9.75, 1.75]


def test_time_spent_waiting_for_a_thread_counts():
    now = [105.0]
    web = Web(clock=lambda: now[0])
    body = builders.body(builders.make_review(builders.make_pod()))
    web.post(body, "/mutate/pods?timeout=10s", environ_overrides={app.ARRIVED: 102.0})
    assert web.left == [6.75]
    assert web.observer.decisions[0].seconds == 3


@pytest.mark.parametrize("method", ["get", "head"])
def test_probes_say_ok(web, method):
    for path in ("/healthz", "/readyz"):
        answer = getattr(web.client, method)(path)
        assert answer.status_code == 200
        assert answer.text == ("ok\n" if method == "get" else "")


def test_readyz_says_everything_that_is_missing():
    answer = Web(ready=("JobSets are not listed yet", "no certificate")).client.get("/readyz")
    assert answer.status_code == 503
    assert answer.text == "JobSets are not listed yet\nno certificate\n"


def test_an_unready_server_still_decides():
    assert Web(ready=("no",)).review(builders.make_pod())["allowed"] is True


def test_a_review_is_answered_alike_by_the_short_way_and_by_flask(web):
    sent = builders.body(builders.make_review(builders.make_pod(index=2), uid="u-7"))
    short = web.post(sent)
    long = web.post(sent, content_type="application/json; charset=utf-8")
    assert (short.status_code, short.data) == (long.status_code, long.data)
    assert json.loads(short.data)["response"]["patch"]
    assert [item.hook for item in web.observer.decisions] == ["mutate-pods"] * 2


class Counting(facts.StaticReader):
    """Knows its JobSets only live, and counts the questions."""

    asked_cache = asked_live = 0

    def cached_jobset(self, *, namespace, name):
        self.asked_cache += 1

    def live_jobset(self, *, namespace, name, timeout):
        self.asked_live += 1
        return super().cached_jobset(namespace=namespace, name=name)


def environ(body, **more):
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/mutate/pods",
        "QUERY_STRING": "timeout=10s",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        app.AT_ONCE: True,
        **more,
    }


def test_what_the_cache_knows_is_answered_at_once(web):
    body = builders.body(builders.make_review(builders.make_pod(index=2), uid="u-7"))
    status, headers, text = wsgi.call(web.application, environ(body))
    assert (status, ("Content-Type", "application/json") in headers) == (200, True)
    assert json.loads(text)["response"]["uid"] == "u-7"


def test_what_must_be_looked_up_is_put_off_and_then_counted_once():
    reader = Counting(admission.views([builders.make_jobset()]))
    web = Web(reader=reader)
    body = builders.body(builders.make_review(builders.make_pod(index=2), uid="u-7"))
    request = environ(body)
    with pytest.raises(wsgi.LaterError):
        wsgi.call(web.application, request)
    assert (reader.asked_cache, reader.asked_live, web.observer.decisions) == (1, 0, [])
    del request[app.AT_ONCE]
    status, _, text = wsgi.call(web.application, request)
    assert (status, json.loads(text)["response"]["allowed"]) == (200, True)
    assert (reader.asked_cache, reader.asked_live, len(web.observer.decisions)) == (1, 1, 1)


@pytest.mark.parametrize(
    "odd",
    [
        {"CONTENT_TYPE": "text/plain"},
        {"PATH_INFO": "/nowhere"},
        {"HTTP_CONTENT_ENCODING": "gzip"},
        {"CONTENT_LENGTH": str(LIMIT + 1)},
        {"CONTENT_LENGTH": "-1"},
        {"CONTENT_LENGTH": "9" * 5000},
        {"CONTENT_LENGTH": "\u0661"},
    ],
)
def test_what_is_odd_about_a_request_is_nothing_to_be_told_at_once(web, odd):
    with pytest.raises(wsgi.LaterError):
        wsgi.call(web.application, environ(b"{}", **odd))


def test_what_is_no_review_is_refused_at_once(web):
    status, _, text = wsgi.call(web.application, environ(b"{}"))
    assert (status, b"expected apiVersion" in text) == (400, True)
    assert [status for status, _, _ in web.observer.rejections] == [400]
