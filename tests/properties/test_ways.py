"""One answer, whatever way a request takes: in the loop, put off, in a thread, through Flask.

The ways are taken by the application itself, so that they differ in nothing but what leads there.
"""

import contextlib
import io
import json
import unittest.mock

from hypothesis import given
from hypothesis import strategies as st

import admission
import builders
from properties import test_admission
from tfadmit_webhook import app, facts, jsontext, wsgi
from tfadmit_webhook.settings import Server

SHORT, FLASK = "application/json", "application/json; charset=utf-8"
# What the two JSON libraries may see differently, and what breaks a text.
ODD = [
    b"NaN", b"-Infinity", b"1e400", b"-0.0", b"1E+2", b"123456789012345678901234567890",
    b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', b'"\xff"', b'"\xed\xa0\x80"', b"\xef\xbb\xbf",
    b'{"a":1,"a":2}', b'"uid":"other",', b'"kind":null,', b"[" * 200 + b"]" * 200, b"[" * 5000,
    b"\x00", b"}", b",", b"",
]  # fmt: skip


class Live(facts.StaticReader):
    """Knows its JobSets only by asking."""

    def cached_jobset(self, *, namespace, name):
        return None

    def live_jobset(self, *, namespace, name, timeout):
        return super().cached_jobset(namespace=namespace, name=name)


class Observer:
    """Remembers what was decided and refused, without what is another each time."""

    def __init__(self):
        self.told = []

    def decided(self, request, decision, *, hook, seconds, fault=None):
        self.told.append((request.uid, decision.allowed, decision.reason, hook, repr(fault)))

    def rejected(self, *, status, message, path):
        self.told.append((status, message, path))

    def shed(self, cause):
        self.told.append(cause)


def answers(body, path, reader, *, content_type, at_once=False):
    observer = Observer()
    context = admission.context(reader=reader)
    application = app.create_app(
        context_for=lambda _: context,
        ready=tuple,
        observer=observer,
        server=Server(),
        clock=lambda: 0.0,
    )
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "QUERY_STRING": "timeout=10s",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        app.ARRIVED: 0.0,
    }
    if at_once:  # as the bridge does
        environ[app.AT_ONCE] = True
        with contextlib.suppress(wsgi.LaterError):
            return wsgi.call(application, environ), observer.told
        assert observer.told == []
        del environ[app.AT_ONCE]
        environ["wsgi.input"].seek(0)
    return wsgi.call(application, environ), observer.told


@st.composite
def bodies(draw):
    """A review of a pod, whole or with something odd in some place."""
    review = builders.make_review(draw(test_admission.pods()), uid="u-1")
    body = json.dumps(review, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        places = [i for i, byte in enumerate(body) if byte in b'{[,:"']
        begin = draw(st.sampled_from(places)) + 1
        end = begin + draw(st.sampled_from([0, 0, 1, 4, len(body)]))
        body = body[:begin] + draw(st.sampled_from(ODD)) + body[end:]
    return body


@given(bodies(), st.sampled_from(["/mutate/pods", "/mutate/jobsets", "/validate/trainjobs"]))
def test_every_way_leads_to_the_same_answer_byte_for_byte(body, path):
    views = admission.views([builders.make_jobset()])
    for reader in (facts.StaticReader(views), Live(views)):
        flask = answers(body, path, reader, content_type=FLASK)
        assert answers(body, path, reader, content_type=SHORT) == flask
        assert answers(body, path, reader, content_type=SHORT, at_once=True) == flask
        with unittest.mock.patch.object(jsontext, "load", json.loads):
            assert answers(body, path, reader, content_type=SHORT) == flask
