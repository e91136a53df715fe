"""What can be wrong with the section `transfer` of the settings, beyond wrong types. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tfadmit_webhook import raw

# As Kubernetes writes quantities (apimachinery, resource.Quantity), without signs and exponents.
QUANTITY: Final = r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?"


def faults(values: Mapping[str, Any]) -> Iterator[tuple[raw.Path, str]]:
    """Find an image that is none, quantities that are none, and folders that are too much."""
    section = raw.mapping(values.get("transfer"))
    image = section.get("image")
    if isinstance(image, str) and (not image.strip() or re.search(r"\s", image)):
        yield ("transfer", "image"), f"is {image!r}: write the name of an image"
    for name, quantity in raw.mapping(section.get("resources")).items():
        if isinstance(quantity, str) and not re.fullmatch(QUANTITY, quantity):
            yield (
                ("transfer", "resources", name),
                f"is {quantity!r}, which is no quantity such as 250m or 512Mi",
            )
    for index, folder in enumerate(raw.sequence(section.get("hostPaths"))):
        if isinstance(folder, str) and (words := _folder(folder)):
            yield ("transfer", "hostPaths", index), words


def _folder(folder: str) -> str:
    if not folder.startswith("/"):
        return f"is {folder!r}: write a path of the nodes from / on"
    if not folder.strip("/"):
        return "is the whole file system of the nodes: name folders in it"
    if {".", ".."} & set(folder.split("/")):
        return f"is {folder!r}: write it without . and .."
    return ""
