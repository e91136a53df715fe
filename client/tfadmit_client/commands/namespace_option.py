"""The options `-n` and `--namespace-labels` of commands that read files: where objects will be."""

import argparse
from collections.abc import Iterable, Mapping

from tfadmit_client.files import manifest
from tfadmit_webhook import raw

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of namespaces by name; of those that are missing here nothing is known."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NS",
        default="default",
        help="namespace of objects that name none (default: default)",
    )
    parser.add_argument(
        "--namespace-labels",
        metavar="KEY=VALUE,…",
        type=_labels,
        help="labels of that namespace, for `overrides` of the settings; those of Namespace "
        "objects among the files are known",
    )


def known(arguments: argparse.Namespace, manifests: Iterable[manifest.Manifest]) -> Namespaces:
    """Give the labels of namespaces that the files and the options state."""
    found = {
        item.name: raw.strings(raw.at(item.content, ("metadata", "labels")))
        for item in manifests
        if (item.group, item.kind) == ("", "Namespace")
    }
    if arguments.namespace_labels is not None:
        found[arguments.namespace] = arguments.namespace_labels
    return found


def _labels(text: str) -> Mapping[str, str]:
    pairs = [word.partition("=") for word in text.split(",") if word.strip()]
    if not all(key.strip() and separator for key, separator, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r}: write key=value, several with commas")
    return {key.strip(): value.strip() for key, _, value in pairs}
