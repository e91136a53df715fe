"""Whether two webhooks give the same answers, before their speed is compared.

The patches may differ; the pods after them may not. `jsonpatch` applies them, an implementation
that belongs to neither.
"""

from __future__ import annotations

import base64
import copy
import http.client
import json
import ssl
from typing import Any

import jsonpatch

from bench import specimens
from bench.running import Server


class DifferentError(RuntimeError):
    """Two webhooks gave different answers; their figures could not be compared."""


def check(servers: tuple[Server, Server], case: specimens.Case) -> list[Any]:
    """Send all reviews of a case to both; gives the objects after admission."""
    found = []
    for one in case.specimens:
        first, second = (_admitted(server, case.path, one) for server in servers)
        if first != second:
            names = " and ".join(server.name for server in servers)
            raise DifferentError(
                f"{case.name}: {names} differ:\n{json.dumps(first)}\n{json.dumps(second)}"
            )
        found.append(first)
    return found


def _admitted(server: Server, path: str, one: specimens.Specimen) -> Any:
    answer = _ask(server, path, one.review)
    if answer["uid"] != specimens.UID or answer["allowed"] is not one.allowed:
        raise DifferentError(f"{server.name} answers {answer}")
    patch = json.loads(base64.b64decode(answer.get("patch", "W10=")))  # W10= is []
    if bool(patch) is not one.patched:
        raise DifferentError(f"{server.name} answers with the patch {patch}")
    return jsonpatch.apply_patch(copy.deepcopy(one.review["request"]["object"]), patch)


def _ask(server: Server, path: str, review: Any) -> Any:
    trust = ssl.create_default_context(cafile=server.target.ca)
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.target.port, context=trust, timeout=10
    )
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(review).encode(), headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise DifferentError(f"{server.name} answers {answer.status}: {text!r}")
    return json.loads(text)["response"]
