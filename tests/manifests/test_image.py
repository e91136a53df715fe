"""The images of webhook and transfer, read as text: no engine is needed to see who runs what."""

from __future__ import annotations

import re

import pytest

from manifests import shipped

IMAGES = shipped.DEPLOY / "images"


@pytest.fixture(params=["webhook", "transfer"])
def image(request):
    return request.param


@pytest.fixture
def lines(image):
    text = (IMAGES / image / "Dockerfile").read_text().replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and line[0] != "#"]


@pytest.fixture
def final_stage(lines):
    start = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    return lines[start:]


def test_every_stage_is_the_same_python(lines):
    stages = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert stages == ["python:3.13-slim"] * 3


def test_dependencies_are_installed_by_hash_from_the_lock_file(lines, image):
    installs = [line for line in lines if re.search(r"^RUN .*\bpip\b.* install ", line)]
    locked = [line for line in installs if "--require-hashes" in line]
    assert any(line.endswith(f"-r requirements/{image}.lock") for line in locked)
    # What is not locked is our own wheel, and that install may reach no index.
    assert all("--no-index --no-deps" in line for line in installs if line not in locked)


def test_the_build_backend_is_locked_too(lines):
    (build,) = (line for line in lines if "pip wheel" in line)
    assert "--no-build-isolation" in build


def test_runs_as_the_user_of_the_deployment(final_stage, base):
    assert "USER 65532:65532" in final_stage
    pod = shipped.pod_spec(base, "tfadmit-webhook")
    assert pod["securityContext"]["runAsUser"] == 65532


def test_starts_tfadmit_behind_an_init_and_writes_nowhere_but_tmp(final_stage, image):
    program = {"webhook": '"tfadmit"', "transfer": '"python", "-m", "tfadmit_transfer"'}[image]
    assert final_stage[-1] == f'ENTRYPOINT ["tini", "--", {program}]'
    assert any(
        line.startswith("RUN ") and " install " in line and " tini " in line for line in final_stage
    )
    (environment,) = (line for line in final_stage if line.startswith("ENV "))
    assert "HOME=/tmp" in environment
    assert "PYTHONDONTWRITEBYTECODE=1" in environment
    # The tests of overload measure memory with the same.
    assert image != "webhook" or "MALLOC_MMAP_THRESHOLD_=131072" in environment


def test_the_build_context_holds_what_is_copied_and_no_more(lines):
    ignore = (shipped.ROOT / ".dockerignore").read_text().split("\n")
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    copied = {
        source.split("/")[0]
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert "*" in ignore
    assert copied == allowed
    assert all((shipped.ROOT / name).exists() for name in allowed)


def test_no_registry_and_no_moving_tag_is_built_into_the_manifests(overlay):
    pods = [i["spec"]["template"]["spec"] for i in overlay if i["kind"] == "Deployment"]
    images = {container["image"] for pod in pods for container in pod["containers"]}
    assert images == {"tfadmit/webhook:0.1.0"}
