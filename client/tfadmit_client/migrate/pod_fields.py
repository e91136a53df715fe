"""Fields of pod templates with a value of the wrong type, which no API server took.

They are copied as they are, so a mistake in a file would else be told by the API server, in words
about an object that its author has not written. Only types, and only of what people write by hand:
what a pod means is not judged here. Pure.
"""

from collections.abc import Iterator, Mapping

from tfadmit_client.migrate import fields
from tfadmit_webhook import raw

_LISTS = ("containers", "initContainers")


def metadata(content: raw.JsonObject, *, at: raw.Path) -> Iterator[fields.Fault]:
    """Find labels and annotations that are none."""
    yield from fields.wrong(content, _METADATA, at=at)


def pod(template: raw.JsonObject, *, at: raw.Path) -> Iterator[fields.Fault]:
    """Find wrong types in a pod template."""
    yield from metadata(raw.mapping(template.get("metadata")), at=(*at, "metadata"))
    spec, where = raw.mapping(template.get("spec")), (*at, "spec")
    yield from fields.wrong(spec, _SPEC, at=where)
    for kind in _LISTS:
        for index, item in enumerate(raw.sequence(spec.get(kind))):
            yield from _container(raw.mapping(item), at=(*where, kind, index))


def _container(content: raw.JsonObject, *, at: raw.Path) -> Iterator[fields.Fault]:
    yield from fields.wrong(content, _CONTAINER, at=at)
    for index, item in enumerate(raw.sequence(content.get("env"))):
        place, variable = (*at, "env", index), raw.mapping(item)
        yield from fields.wrong(variable, _VARIABLE, at=place)
        if isinstance(item, dict) and not variable.get("name"):
            yield fields.Fault(path=place, message="the variable has no name")


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_maps(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_map, value))


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(
        item is None or isinstance(item, str) for item in value.values()
    )


_MAP = fields.Want(what="a map", check=_is_map)
_MAPS = fields.Want(what="a list of maps", check=_is_maps)
_TEXT = fields.Want(
    what='a text, in quotes where it looks like a number: "1"',
    check=lambda value: isinstance(value, str),
)
_TEXTS = fields.Want(
    what='a list of texts, numbers in quotes: [python, train.py, "1"]', check=_is_texts
)
_TEXT_MAP = fields.Want(
    what='a map of texts, in quotes where they look like numbers: {a: "1"}', check=_is_text_map
)
_BOOLEAN = fields.Want(what="true or false", check=lambda value: isinstance(value, bool))
_METADATA: Mapping[raw.Path, fields.Want] = {("labels",): _TEXT_MAP, ("annotations",): _TEXT_MAP}
_SPEC: Mapping[raw.Path, fields.Want] = {
    ("containers",): _MAPS,
    ("initContainers",): _MAPS,
    ("volumes",): _MAPS,
    ("tolerations",): _MAPS,
    ("imagePullSecrets",): _MAPS,
    ("nodeSelector",): _TEXT_MAP,
    ("affinity",): _MAP,
    ("securityContext",): _MAP,
    ("serviceAccountName",): _TEXT,
    ("schedulerName",): _TEXT,
    ("priorityClassName",): _TEXT,
    ("hostNetwork",): _BOOLEAN,
}
_CONTAINER: Mapping[raw.Path, fields.Want] = {
    ("name",): _TEXT,
    ("image",): _TEXT,
    ("command",): _TEXTS,
    ("args",): _TEXTS,
    ("workingDir",): _TEXT,
    ("env",): _MAPS,
    ("envFrom",): _MAPS,
    ("ports",): _MAPS,
    ("volumeMounts",): _MAPS,
    ("resources",): _MAP,
    ("resources", "limits"): _MAP,
    ("resources", "requests"): _MAP,
    ("securityContext",): _MAP,
}
_VARIABLE: Mapping[raw.Path, fields.Want] = {
    ("name",): _TEXT,
    ("value",): _TEXT,
    ("valueFrom",): _MAP,
}
