"""A JSON schema, as strict as the API server with `--validate=strict`, out of a CRD.

CEL rules and formats are left to a real API server; types, enums, required and unknown fields are
what typing errors in a manifest run into.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

# libyaml where PyYAML was built with it: these files have 10,000 lines each.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_JSON_SCHEMA = ("format", "default", "description")


def load(crd: Path, *, version: str) -> dict[str, Any]:
    """The strict schema of one version of a custom resource."""
    document = yaml.load(crd.read_text(), Loader=_LOADER)
    (found,) = (v for v in document["spec"]["versions"] if v["name"] == version)
    return strict(found["schema"]["openAPIV3Schema"])


def strict(node: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema in JSON Schema's terms, with unknown fields refused."""
    if node.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    kept = {
        key: value
        for key, value in node.items()
        if key not in _NOT_JSON_SCHEMA and not key.startswith("x-kubernetes-")
    }
    if "(?i)" in node.get("pattern", ""):
        # Go takes flags anywhere, Python at the start only.
        kept["pattern"] = "(?i)" + node["pattern"].replace("(?i)", "")
    if "properties" in node:
        kept["properties"] = {key: strict(value) for key, value in node["properties"].items()}
        if not node.get("x-kubernetes-preserve-unknown-fields"):
            kept["additionalProperties"] = False
    elif isinstance(node.get("additionalProperties"), Mapping):
        kept["additionalProperties"] = strict(node["additionalProperties"])
    if "items" in node:
        kept["items"] = strict(node["items"])
    return kept
