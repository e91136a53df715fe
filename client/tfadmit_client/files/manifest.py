"""Kubernetes objects from files, directories and standard input, each with the place it came from.

Here: finding and reading files, and what makes a document an object. Not here: the YAML language
(`yamltext`), nor what an object means. Every fault in every file is reported at once.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfadmit_client import fault
from tfadmit_client.files import yamltext
from tfadmit_webhook import raw

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")  # the same as kubectl
# Below what the recursions of the standard library and of the client take.
_MAX_DEPTH = 100
_HELM = "\n  a Helm template? render it first: helm template … | tfadmit preview -f -"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """An object and where it stands."""

    content: raw.JsonObject
    file: str
    line: int
    """Where it begins, counted from 1."""

    text: str = field(default="", repr=False, compare=False)
    """The whole file, to find fields in."""

    place: yamltext.Place = field(default_factory=yamltext.Place)
    """Where in it the object stands."""

    default_namespace: str = "default"

    @property
    def source(self) -> str:
        """File and line, as editors and compilers write them."""
        return f"{self.file}:{self.line}"

    def locate(self, path: raw.Path) -> yamltext.Position:
        """Find where a field of the object stands in its file."""
        return yamltext.locate(self.text, self.place, path)

    @property
    def kind(self) -> str:
        """The kind, without group."""
        return raw.text(self.content.get("kind"))

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return raw.text(self.content.get("apiVersion")).rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name."""
        return raw.text(raw.at(self.content, ("metadata", "name")))

    @property
    def namespace(self) -> str:
        """The namespace that the object states, else the command's."""
        return raw.text(raw.at(self.content, ("metadata", "namespace"))) or self.default_namespace

    @property
    def label(self) -> str:
        """Kind, namespace and name for people; runtimes of the cluster have no namespace."""
        name = self.name or "(no name)"
        return f"{self.kind} {name if self.is_cluster_wide else f'{self.namespace}/{name}'}"

    @property
    def is_cluster_wide(self) -> bool:
        """Whether the kind has no namespace, among the kinds that the client knows."""
        return self.kind == "ClusterTrainingRuntime"


def read(paths: Sequence[str], *, namespace: str) -> list[Manifest]:
    """Read all objects, in the order of the files.

    Raises:
        ClientError: with every fault found, one a line.
    """
    manifests: list[Manifest] = []
    faults: list[str] = []
    for name, text in _texts(paths, faults):
        manifests += _parsed(text, name=name, namespace=namespace, faults=faults)
    kept = _without_doubles(manifests, faults)
    if not kept and not faults:
        faults.append(f"no Kubernetes object in {', '.join(paths)}")
    if faults:
        raise fault.ClientError("\n".join(faults))
    return kept


def _parsed(text: str, *, name: str, namespace: str, faults: list[str]) -> list[Manifest]:
    """Read one text; what stands before a fault counts."""
    manifests: list[Manifest] = []
    try:
        for document in _documents(text, name=name):
            manifests.append(  # noqa: PERF401
                _manifest(document, name=name, text=text, namespace=namespace)
            )
    except yamltext.TextError as error:
        faults.append(f"{name}:{error.line}: {error}{_templated(text)}")
    except fault.ClientError as error:
        faults.append(str(error))
    return manifests


def _texts(paths: Sequence[str], faults: list[str]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for path in _files(paths, faults):
        if path in seen:
            continue
        seen.add(path)
        name = "standard input" if path == STDIN else path
        try:
            data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
            yield name, data.decode("utf-8-sig")
        except OSError as error:
            faults.append(f"{name}: cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            faults.append(f"{name}: is not UTF-8 text (byte {error.start})")


def _files(paths: Sequence[str], faults: list[str]) -> Iterator[str]:
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            yield path
            continue
        found = sorted(str(item) for item in Path(path).iterdir() if item.suffix in _SUFFIXES)
        if not found:
            faults.append(f"{path}: no file in this directory ends in {', '.join(_SUFFIXES)}")
        yield from found


def _documents(text: str, *, name: str) -> Iterator[yamltext.Document]:
    """Read JSON by its own rules when it is JSON: it may be indented by tabs, YAML may not."""
    if text.lstrip().startswith("{"):
        try:
            content = json.loads(text, object_pairs_hook=_unique)
            if "\\ud" in text.lower():
                json.dumps(content, ensure_ascii=False).encode()
        except RecursionError as error:
            raise yamltext.TextError("nested too deep", line=1) from error
        except ValueError as error:
            if name.endswith(".json") and isinstance(error, json.JSONDecodeError):
                raise yamltext.TextError(
                    f"no valid JSON: {error.msg}", line=error.lineno
                ) from error
            # several objects, YAML in braces, or what YAML's reader knows the line of: a double
            # key, half of a character
        else:
            yield from _flat(content, ())
            return
    yield from yamltext.documents(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is there twice")
    return content


def _flat(content: object, prefix: raw.Path) -> Iterator[yamltext.Document]:
    items = raw.mapping(content).get("items")
    if str(raw.mapping(content).get("kind")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _flat(yamltext.typed(item, content), (*prefix, "items", index))
    elif content is not None:
        place = yamltext.Place(prefix=prefix)
        yield yamltext.Document(content=content, line=1, place=place)


def _manifest(document: yamltext.Document, *, name: str, text: str, namespace: str) -> Manifest:
    source = f"{name}:{document.line}"
    content = document.content
    if not isinstance(content, dict):
        raise fault.ClientError(
            f"{source}: a {type(content).__name__}, not a Kubernetes object: "
            "an object begins with apiVersion and kind"
        )
    if not _is_flat(content):
        raise fault.ClientError(f"{source}: nested too deep: more than {_MAX_DEPTH} levels")
    missing = [key for key in ("apiVersion", "kind") if not raw.text(content.get(key))]
    if missing:
        raise fault.ClientError(
            f"{source}: not a Kubernetes object, it has no {' and no '.join(missing)}: "
            "write e.g. `apiVersion: trainer.kubeflow.org/v1alpha1` and `kind: TrainJob`"
        )
    return Manifest(
        content=content,
        file=name,
        line=document.line,
        text=text,
        place=document.place,
        default_namespace=namespace,
    )


def _is_flat(content: object) -> bool:
    """Whether an object can be walked; the schemas of Kubernetes have some twenty levels."""
    level = [content]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for parent in level
            if isinstance(parent, dict | list)
            for item in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return True
    return False


def _without_doubles(manifests: Sequence[Manifest], faults: list[str]) -> list[Manifest]:
    """Leave out repetitions; two different objects of one name are a fault."""
    kept: dict[tuple[str, ...], Manifest] = {}
    for item in manifests:
        key = (item.group, item.kind, item.namespace, item.name or item.source)
        earlier = kept.setdefault(key, item)
        if earlier.content != item.content:
            faults.append(
                f"{item.source}: {item.label} is also in {earlier.source}, with other content: "
                "name only one of the two with -f"
            )
    return list(kept.values())


def _templated(text: str) -> str:
    return _HELM if "{{" in text else ""
