"""The images that run here are those of the shipped Dockerfiles: files, user, start, variables."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from harness import cache, tools
from harness.node import build, images

_RELEASE = "lib/python3.13/site-packages"


@pytest.fixture(scope="module")
def webhook() -> build.Image:
    return images.WEBHOOK.build(cache.to_stderr)


@pytest.fixture(scope="module")
def installed(webhook: build.Image) -> dict[str, Path]:
    """What lies under /opt/tfadmit, by path from there."""
    place = "opt/tfadmit/"
    found = build.files(webhook.layers)
    return {
        name.removeprefix(place): file for name, file in found.items() if name.startswith(place)
    }


def test_the_server_is_started_as_the_dockerfile_says(webhook: build.Image):
    configuration = webhook.settings.configuration()
    assert configuration["Entrypoint"] == ["tini", "--", "tfadmit"]
    assert configuration["Cmd"] == []
    assert configuration["User"] == "65532:65532"
    assert set(configuration["ExposedPorts"]) == {"10250/tcp", "8080/tcp"}
    environment = dict(item.split("=", 1) for item in configuration["Env"])
    assert environment.pop("PATH").startswith("/opt/tfadmit/bin:/usr/local/bin:")
    assert environment == {
        "HOME": "/tmp",
        "MALLOC_MMAP_THRESHOLD_": "131072",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def test_every_distribution_of_the_lock_file_is_installed_and_no_other(installed):
    pattern = re.compile(rf"{_RELEASE}/([^/]+)-([^-/]+)\.dist-info/RECORD")
    found = {
        match[1].lower().replace("_", "-"): match[2]
        for match in map(pattern.fullmatch, installed)
        if match
    }
    assert (
        found.pop("tfadmit")
        == tools.ROOT.joinpath("trainer/tfadmit_trainer/__init__.py")
        .read_text()
        .partition('__version__ = "')[2]
        .partition('"')[0]
    )
    lock = (tools.ROOT / "requirements/webhook.lock").read_text()
    locked = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock, re.MULTILINE))
    # Some are for other releases of Python or other systems; none may come from elsewhere.
    assert (
        found.items()
        <= {name.replace(".", "-"): version for name, version in locked.items()}.items()
    )
    assert {"flask", "aiohttp", "kubernetes", "cryptography"} <= found.keys()


def test_our_modules_in_the_image_are_those_of_the_checkout(installed):
    for folder, package in (
        ("webhook", "tfadmit_webhook"),
        ("certs", "tfadmit_certs"),
        ("trainer", "tfadmit_trainer"),
        ("client", "tfadmit_client"),
    ):
        source = tools.ROOT / folder
        ours = {
            str(file.relative_to(source)): file.read_bytes()
            for file in (source / package).rglob("*")
            if file.is_file() and "__pycache__" not in file.parts
        }
        there = {
            name.removeprefix(f"{_RELEASE}/"): file.read_bytes()
            for name, file in installed.items()
            if name.startswith(f"{_RELEASE}/{package}/")
            and file.is_file()
            and "__pycache__" not in name
        }
        assert there == ours


def test_every_installed_file_is_in_the_list_of_its_distribution(installed):
    """So nothing is in /opt/tfadmit that pip did not put there from a wheel with a known hash."""
    listed = {"pyvenv.cfg", "bin/python", "bin/python3", "bin/python3.13"}
    for name, file in installed.items():
        if name.endswith(".dist-info/RECORD"):
            base = Path(_RELEASE)
            for path, *_ in csv.reader(file.read_text().splitlines()):
                listed.add(str(_normal(base / path)))
    activation = re.compile(r"bin/[Aa]ctivate(\.\w+)?|lib64|\.gitignore|CACHEDIR\.TAG")
    stray = {
        name
        for name, file in installed.items()
        if (file.is_symlink() or file.is_file())
        and name not in listed
        and not activation.fullmatch(name)
    }
    assert stray == set()


def test_the_training_dockerfile_gives_user_home_and_start(tmp_path: Path):
    """On the small base: what it adds is the same on every base."""
    python = images.bases(cache.to_stderr)
    (name,) = python
    image = build.build(
        (tools.ROOT / "deploy/images/training/Dockerfile").read_text(),
        context=tools.ROOT,
        bases=python,
        arguments={"BASE": name},
    )
    configuration = image.settings.configuration()
    assert configuration["Entrypoint"] == ["tfadmit-run", "--"]
    assert configuration["User"] == "65532:65532"
    assert "HOME=/home/tensorflow" in configuration["Env"]
    files = build.files(image.layers)
    assert "tensorflow:x:65532:65532:" in files["etc/passwd"].read_text()
    assert files["workspace/output"].stat().st_uid == 65532
    assert files["home/tensorflow"].stat().st_uid == 65532
    assert "usr/local/bin/tfadmit-run" in files


def test_a_step_that_fails_shows_what_it_printed():
    text = f"FROM {next(iter(images.bases(cache.to_stderr)))}\nRUN echo so that; exit 3"
    with pytest.raises(build.StepError, match=r"(?s)RUN echo so that; exit 3.*so that"):
        build.build(text, context=tools.ROOT, bases=images.bases(cache.to_stderr))


def test_a_base_that_nobody_makes_is_refused():
    with pytest.raises(build.UnknownBaseError, match=r"FROM example\.com/x: only python"):
        build.build("FROM example.com/x", context=tools.ROOT, bases=images.bases(cache.to_stderr))


def _normal(path: Path) -> Path:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)
