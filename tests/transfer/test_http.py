"""Files by HTTP, from a server that breaks off, cannot resume, or says no."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import random

import pytest

from harness import loopback
from tfadmit_transfer import download, fault, http_source, progress, uri
from transfer import world

CONTENT = random.Random(5).randbytes(3_000_000)


class Site(http.server.ThreadingHTTPServer):
    """A server of one file, and how it behaves."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.tag = '"one"'
        self.resumes = True
        self.chunked = False
        self.location = "/file"
        self.length = ""
        self.range = ""
        self.breaks: list[int] = []
        self.answers: list[int] = []
        self.asked: list[tuple[str, str | None]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        if server.answers:
            self.send_response(server.answers.pop(0))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", self.server.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._content()

    def _content(self):
        begin = 0
        wanted = self.headers.get("Range")
        whole = self.headers.get("If-Range") not in (None, self.server.tag)
        if wanted and self.server.resumes and not whole:
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
        content = self.server.content[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            stated = self.server.range or f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}"
            self.send_header("Content-Range", stated)
        self.send_header("ETag", self.server.tag)
        if self.server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
            return
        self.send_header("Content-Length", self.server.length or str(len(content)))
        self.end_headers()
        if self.server.length:
            self.close_connection = True
        if self.server.breaks:
            self.wfile.write(content[: self.server.breaks.pop(0)])
            self.close_connection = True
        else:
            self.wfile.write(content)

    def log_message(self, *words):
        pass


@pytest.fixture
def site():
    server = Site()
    with loopback.serving(server):
        yield server


def get(site, tmp_path, path="/file", **wanted):
    where = uri.parse(f"http://127.0.0.1:{site.server_port}{path}")
    patience = world.hasty()
    meter = progress.Meter(what="file", total=None, say=print, clock=patience.clock)
    target = tmp_path / "target"
    got = download.file(
        http_source.HttpSource(where),
        target,
        wanted=download.Wanted(sha256=where.sha256, **wanted),
        patience=patience,
        meter=meter,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert got.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()
    return target.read_bytes()


def test_a_query_and_its_escapes_reach_the_server_as_they_are(site, tmp_path):
    assert get(site, tmp_path, "/file?sig=a%2Fb&x=1,2") == CONTENT
    assert site.asked == [("/file?sig=a%2Fb&x=1,2", None)]


def test_a_redirection_is_followed(site, tmp_path):
    assert get(site, tmp_path, "/moved") == CONTENT


def test_what_a_request_may_not_have_is_escaped(site, tmp_path):
    assert get(site, tmp_path, "/fi le ü%20.csv?x=ß") == CONTENT
    assert site.asked == [("/fi%20le%20%C3%BC%20.csv?x=%C3%9F", None)]


@pytest.mark.parametrize(
    "text", ["http://h:abc/x", "http://[::1/x", "http://a..b/x", f"http://{'a' * 64}/x"]
)
def test_what_cannot_be_asked_is_not_asked_again_and_again(text):
    with pytest.raises(fault.RefusedError, match="it leads to no address that can be asked"):
        http_source.HttpSource(uri.parse(text)).open(offset=0, version="")


@pytest.mark.parametrize("location", ["http://h:abc/x", "http://a..b/x", "file:///x"])
def test_a_redirection_to_nowhere_is_a_sentence_of_one_line(site, tmp_path, location):
    site.location = location
    with pytest.raises(fault.RefusedError, match=r"is (it|the address) right") as refused:
        get(site, tmp_path, "/moved")
    assert "\n" not in str(refused.value)


def test_a_part_that_was_not_asked_for_is_not_taken(site, tmp_path):
    site.breaks += [1_100_000]
    site.range = f"bytes 5-{len(CONTENT) - 1}/{len(CONTENT)}"
    assert get(site, tmp_path) == CONTENT


@pytest.mark.parametrize("length", ["abc", "-5"])
def test_a_length_that_is_none_is_not_known(site, tmp_path, length):
    site.length = length
    assert get(site, tmp_path) == CONTENT


def test_an_answer_without_a_length_is_taken(site, tmp_path):
    site.chunked = True
    assert get(site, tmp_path) == CONTENT


def test_a_broken_connection_goes_on_where_it_was(site, tmp_path):
    site.breaks += [1_100_000, 1_000_000]
    assert get(site, tmp_path) == CONTENT
    ranges = [asked for _, asked in site.asked]
    assert ranges[0] is None
    assert all(asked.startswith("bytes=") for asked in ranges[1:])
    assert len(ranges) == 3


def test_a_server_that_cannot_resume_is_asked_for_all_of_it_again(site, tmp_path):
    site.resumes = False
    site.breaks += [1_100_000]
    assert get(site, tmp_path) == CONTENT


def test_a_file_that_was_replaced_is_begun_anew(site, tmp_path):
    other = CONTENT[::-1]
    site.breaks += [1_100_000]

    def replaced(line):
        site.content, site.tag = other, '"two"'

    where = uri.parse(f"http://127.0.0.1:{site.server_port}/file")
    patience = world.hasty(say=replaced)
    meter = progress.Meter(what="file", total=None, say=print, clock=patience.clock)
    download.file(
        http_source.HttpSource(where),
        tmp_path / "target",
        wanted=download.Wanted(),
        patience=patience,
        meter=meter,
    )
    assert (tmp_path / "target").read_bytes() == other


def test_a_server_with_a_bad_moment_is_asked_again(site, tmp_path):
    site.answers += [503, 429, 500]
    assert get(site, tmp_path) == CONTENT


@pytest.mark.parametrize(
    ("code", "sentence"),
    [(404, "is the address right?"), (403, "it wants credentials"), (410, "answers 410 Gone")],
)
def test_a_refusal_is_final_and_says_why(site, tmp_path, code, sentence):
    site.answers += [code]
    with pytest.raises(fault.RefusedError, match=r"http://127\.0\.0\.1:\d+/file") as refused:
        get(site, tmp_path)
    assert sentence in str(refused.value)
    assert len(site.asked) == 1


def test_another_checksum_than_the_stated_one_leaves_no_file(site, tmp_path):
    with pytest.raises(fault.DamagedError, match="expected 0000"):
        get(site, tmp_path, f"/file#sha256={'0' * 64}")
    with contextlib.suppress(StopIteration):
        assert not next(tmp_path.iterdir())


def test_a_stated_checksum_that_fits_is_no_hindrance(site, tmp_path):
    assert get(site, tmp_path, f"/file#sha256={hashlib.sha256(CONTENT).hexdigest()}") == CONTENT
