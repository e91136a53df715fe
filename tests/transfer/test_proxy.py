"""Where a proxy is the only way out: what the environment names is heeded by all that fetches."""

from __future__ import annotations

import dataclasses

import pytest

from harness import proxy
from transfer import world


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
def test_stores_and_addresses_are_asked_by_the_proxy(pod, name):
    pod.put("in/train.csv", b"1,2")
    data = f"train={pod.address}/in/train.csv,page=http://files/x.csv"
    pod = dataclasses.replace(pod, data=data)
    with proxy.running(store=pod.server.port, files=pod.server.port) as way:
        told = {"AWS_ENDPOINT_URL": "http://store", name: way.url, "NO_PROXY": "", "no_proxy": ""}
        process = world.start("fetch", {**pod.environ, **told})
        _, said = process.communicate(timeout=60)
    assert (pod.root / "dataset/train/train.csv").read_bytes() == b"1,2"
    assert {*way.asked} == {"store", "files"}
    # Nobody has this file: the answer comes from there, and shows that it was asked.
    assert process.returncode == 2
    assert "http://files/x.csv: the server answers 404" in said


def test_what_the_proxy_is_not_for_is_asked_directly(pod):
    pod = dataclasses.replace(pod, data=pod.put("in/train.csv", b"1,2"))
    with proxy.running() as way:
        told = {"HTTP_PROXY": way.url, "http_proxy": way.url, "NO_PROXY": "127.0.0.1"}
        process = world.start("fetch", {**pod.environ, **told, "no_proxy": "127.0.0.1"})
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert way.asked == []
