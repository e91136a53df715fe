"""The output as YAML with comments where the meaning changes, or as JSON with the report.

Pure. The YAML is for kubectl: whatever kubectl would not read as the string that it is, is quoted.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tfadmit_client.files import yamlout, yamltext
from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import summary
from tfadmit_webhook import raw

_WIDTH = 100
# At least so much of a comment stands in a line, however deep it is.
_LEAST = 40


def as_yaml(results: Sequence[summary.Result]) -> str:
    """Write all objects as a stream."""
    return "".join(f"---\n{text}" for result in results for text in _documents(result))


def as_json(results: Sequence[summary.Result]) -> str:
    """Write a list that kubectl applies, with the report beside it."""
    objects = [item for result in results for item in (result.made.runtime, result.made.trainjob)]
    content = {
        "apiVersion": "v1",
        "kind": "List",
        "items": objects,
        "report": summary.fields(results),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _documents(result: summary.Result) -> Iterator[str]:
    told = [entry for entry in result.entries if entry.verdict != "exactly"]
    head = [f"From {result.label} ({result.source}) by tfadmit migrate."]
    yield _commented(result.made.runtime, _comments(told, "TrainingRuntime"), head=head)
    yield _commented(result.made.trainjob, _comments(told, "TrainJob"), head=[])


def _comments(
    entries: Iterable[book.Entry], name: book.Object
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Give the comments of one object: what has no place in either stands at the runtime's head."""
    for entry in entries:
        target = entry.target
        lead = "NOT TRANSLATED: " if entry.verdict == "not" and not entry.refuses else ""
        if target is None and name == "TrainingRuntime":
            yield (), f"{lead}{entry.where}: {entry.sentence}"
        elif target is not None and target.object == name:
            yield target.path, lead + _at_its_place(entry)


def _at_its_place(entry: book.Entry) -> str:
    """Write the comment of an entry above its field, with no more of the path than is needed."""
    if not entry.path:
        return entry.sentence[0].upper() + entry.sentence[1:]
    keys = [index for index, step in enumerate(entry.path) if isinstance(step, str)]
    return f"{raw.dotted(entry.path[keys[-1] :])}: {entry.sentence}"


def _commented(
    content: dict[str, Any],
    comments: Iterable[tuple[tuple[str | int, ...], str]],
    *,
    head: Sequence[str],
) -> str:
    text = dump(content)
    lines = text.removesuffix("\n").split("\n")
    above: dict[int, list[str]] = {0: [*head]}
    locate = yamltext.locator(text, yamltext.Place())
    paths: dict[tuple[str | int, ...], int] = {(): 0}
    for path, comment in comments:
        if path not in paths:
            paths[path] = locate(path).line - 1
        above.setdefault(paths[path], []).append(comment)
    written: list[str] = []
    for number, line in enumerate(lines):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        for comment in above.get(number, ()):
            written += _wrapped(comment, indent)
        written.append(line)
    return "\n".join(written) + "\n"


def _wrapped(comment: str, indent: str) -> list[str]:
    width = max(_WIDTH - len(indent), _LEAST)
    clean = " ".join("".join(char if char.isprintable() else " " for char in comment).split())
    return [
        indent + line
        for line in textwrap.wrap(
            clean,
            width=width,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def dump(content: object) -> str:
    """Write an object as YAML that kubectl reads back as it is."""
    return yamlout.dump(content, width=_WIDTH)
