"""A TF_CONFIG that somebody else wrote: read, and checked with sentences of our own.

Pure. TensorFlow's own messages for the same faults name a column of the text, a gRPC port, or
nothing at all (it waits); each check here stands for one that was measured.
"""

import json
from dataclasses import dataclass
from typing import Final, get_args

from tfadmit_trainer import contract, encoding, pattern
from tfadmit_trainer.contract import Cluster, Role, Task
from tfadmit_trainer.fault import SetupError

_EXAMPLE: Final = '{"cluster":{"worker":["host:port"]},"task":{"type":"worker","index":0}}'
# Enough of the text to find the place, not so much that the message is lost in it.
_SHOWN: Final = 30


@dataclass(frozen=True)
class Read:
    """What a TF_CONFIG says. `task` is None for one without a cluster: a task alone."""

    task: Task | None
    evaluator_for_all: bool = False
    """The evaluator is listed, and this task is not the evaluator."""


def read(text: str) -> Read:
    """Read a TF_CONFIG.

    Raises:
        SetupError: TensorFlow would fail on it, or wait without end.
    """
    document = _document(text)
    cluster = document.get("cluster")
    if not cluster:
        return Read(task=None)
    members = _cluster(cluster)
    role, index = _task(document.get("task"))
    if role == "evaluator" and not members.evaluator:
        # TensorFlow allows it to be missing; any address will do, nobody calls it.
        alone = ("localhost:1",) * (index + 1)
        members = Cluster(members.chief, members.worker, members.ps, alone)
    _check_task(members, role=role, index=index)
    listed = bool(members.evaluator) and role != "evaluator"
    return Read(Task(cluster=members.seen_by(role), role=role, index=index), listed)


def same(text: str, *, task: Task) -> bool:
    """Whether a TF_CONFIG says what we would write for this task."""
    ours = encoding.tf_config(task)
    if text == ours:
        return True
    try:
        theirs = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(theirs == json.loads(ours))


def _document(text: str) -> dict[str, object]:
    if not text.strip():
        raise SetupError(
            "TF_CONFIG is set but empty, which TensorFlow fails on: remove the variable, or write "
            + _EXAMPLE
        )
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise SetupError(f"TF_CONFIG is nested too deeply: write {_EXAMPLE}") from error
    except json.JSONDecodeError as error:
        raise SetupError(_not_json(text, error)) from error
    if not isinstance(document, dict):
        raise SetupError(f"TF_CONFIG must be a JSON object: {_EXAMPLE}")
    return document


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    around = text[max(0, error.pos - _SHOWN) : error.pos + 1]
    hint = "a comma or a brace too many or too few?"
    if "'" in text and '"' not in text:
        hint = "JSON wants double quotes."
    elif error.msg.startswith("Extra data"):
        hint = "there is a brace too many at the end?"
    elif error.msg.startswith(("Expecting property name", "Illegal trailing comma")):
        hint = "is there a comma before the closing brace?"
    place = f"at character {error.pos}, after …{around!r}"
    return f"TF_CONFIG is not JSON {place} ({error.msg}): {hint}"


def _cluster(document: object) -> Cluster:
    if not isinstance(document, dict):
        raise SetupError(f"TF_CONFIG: cluster must be an object of lists: {_EXAMPLE}")
    for role in document:
        _role(role, place="cluster")
    lists = {role: _addresses(role, hosts) for role, hosts in document.items()}
    if len(lists.get("chief", ())) > 1:
        raise SetupError("TF_CONFIG: cluster has more than one chief; TensorFlow allows one")
    return Cluster(**lists)


def _addresses(role: str, hosts: object) -> tuple[str, ...]:
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise SetupError(f'TF_CONFIG: cluster.{role} must be a list: "{role}":["host:port"]')
    for index, host in enumerate(hosts):
        _check_address(host, place=f"cluster.{role}[{index}]")
    if repeated := sorted({host for host in hosts if hosts.count(host) > 1}):
        raise SetupError(
            f"TF_CONFIG: cluster.{role} lists {repeated[0]!r} twice: each task needs an address of "
            "its own"
        )
    return tuple(hosts)


def _check_address(address: str, *, place: str) -> None:
    if "://" in address:
        raise SetupError(
            f"TF_CONFIG: {place} is {address!r}: leave out the scheme, write "
            f"{address.partition('://')[2]!r}"
        )
    if "{" in address:
        raise SetupError(
            f"TF_CONFIG: {place} is {address!r}: TensorFlow wants each one written out"
        )
    try:
        pattern.parse(address)
    except pattern.PatternError as error:
        raise SetupError(f"TF_CONFIG: {place}: {error}") from error


def _task(document: object) -> tuple[Role, int]:
    if not isinstance(document, dict) or not {"type", "index"} <= set(document):
        raise SetupError(
            "TF_CONFIG has a cluster but does not say which task this is: add "
            '"task":{"type":"worker","index":0} with the index of this pod'
        )
    role = _role(document["type"], place="task.type")
    index = document["index"]
    if isinstance(index, str) and index.isascii() and index.isdigit():
        index = int(index)  # TensorFlow accepts it
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise SetupError(f"TF_CONFIG: task.index is {index!r}: write a number from 0")
    return role, index


def _role(name: object, *, place: str) -> Role:
    for role in get_args(Role):
        if name == role:
            known: Role = role
            return known
    hint = f"use {', '.join(contract.ROLES)}"
    if name == "master":
        hint = "TensorFlow 2 calls it chief"
    elif isinstance(name, str) and name.lower() in contract.ROLES:
        hint = f"write it in small letters, {name.lower()!r}"
    raise SetupError(f"TF_CONFIG: {place} {name!r} is no role: {hint}")


def _check_task(cluster: Cluster, *, role: Role, index: int) -> None:
    size = cluster.size(role)
    if index >= size:
        has = f"only {role} 0 to {size - 1}" if size else f"no {role} at all"
        raise SetupError(
            f"TF_CONFIG: this task is {role} {index}, but cluster has {has}: the index counts from "
            "0 and each task must stand in the list"
        )
