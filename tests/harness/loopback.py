"""Ports and health answers on this machine."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import urllib3

_given: set[int] = set()


def free_port() -> int:
    """A port that is free now and that this process was not given before."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


def healthy(url: str, *, ca: Path | None = None, headers: Mapping[str, str] | None = None) -> bool:
    """Whether the URL answers 200 now. urllib3 heeds no proxy of the environment."""
    with urllib3.PoolManager(ca_certs=str(ca) if ca else None) as pool:
        try:
            answer = pool.request("GET", url, headers=headers, timeout=2, retries=False)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200
