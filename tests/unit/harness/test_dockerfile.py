"""Dockerfiles as values, without carrying them out."""

from __future__ import annotations

import pytest

from harness import tools
from harness.node import dockerfile

TEXT = """\
# a comment
ARG BASE=example.com/one:1
FROM python:3.13-slim AS wheel
WORKDIR /src
COPY a b/ c
# between
RUN --mount=from=other,source=/x,target=/y \\
    pip install \\
    /y/*.whl

FROM ${BASE}
COPY --from=wheel /c /d
ENV A=1 B="two words"
USER 65532:65532
ENTRYPOINT ["run", "--"]
"""


def test_stages_have_names_and_bases():
    first, second = dockerfile.parse(TEXT)
    assert (first.name, first.base) == ("wheel", "python:3.13-slim")
    assert (second.name, second.base) == ("1", "example.com/one:1")


def test_a_build_argument_takes_the_place_of_its_default():
    _, second = dockerfile.parse(TEXT, arguments={"BASE": "other:2"})
    assert second.base == "other:2"


def test_an_instruction_goes_on_in_the_next_line_and_comments_do_not_count():
    first, second = dockerfile.parse(TEXT)
    run = first.instructions[-1]
    assert (run.name, run.text) == ("RUN", "pip install /y/*.whl")
    assert run.options == {"mount": "from=other,source=/x,target=/y"}
    assert [one.name for one in second.instructions] == ["COPY", "ENV", "USER", "ENTRYPOINT"]
    assert second.instructions[0].options == {"from": "wheel"}


def test_words_are_read_in_both_forms():
    assert dockerfile.words('["run", "--"]') == ["run", "--"]
    assert dockerfile.words('A=1 B="two words"') == ["A=1", "B=two words"]


def test_variables_are_expanded_in_both_forms():
    assert dockerfile.expand("/opt/bin:$PATH:${HOME}", {"PATH": "/bin"}) == "/opt/bin:/bin:"


@pytest.mark.parametrize("line", ["ADD x y", "RUN true", "SHELL [bash]"])
def test_what_is_not_known_is_refused(line: str):
    text = line if line.startswith("RUN") else f"FROM a\n{line}"
    with pytest.raises(dockerfile.UnknownError, match=line.partition(" ")[0]):
        dockerfile.parse(text)


@pytest.mark.parametrize("name", ["webhook", "training"])
def test_the_shipped_dockerfiles_are_understood(name: str):
    text = (tools.ROOT / "deploy" / "images" / name / "Dockerfile").read_text()
    assert dockerfile.parse(text)
