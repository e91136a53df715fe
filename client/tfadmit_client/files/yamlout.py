"""Objects as YAML that kubectl reads back as they are.

Pure. What it would not take for a string is quoted. The reverse of `yamltext`.
"""

from typing import Any

import yaml

from tfadmit_client.files import yamltext


def dump(content: object, *, width: int = 100) -> str:
    """Write an object as a document, without its marker."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width)


class _Dumper(yaml.SafeDumper):
    """Shares no parts, quotes what kubectl would not take for a string, keeps numbers in a line."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = None
    if not value.replace("\n", "").isprintable() or not yamltext.is_text(value):
        style = '"'  # escapes what is no letter; YAML takes some of them for ends of lines
    elif "\n" in value:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    flat = bool(value) and all(isinstance(item, int) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flat)


_Dumper.add_representer(str, _string)
_Dumper.add_representer(list, _list)
