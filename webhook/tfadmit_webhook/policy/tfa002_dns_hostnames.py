"""TFA002: a TensorFlow runtime keeps the DNS host names of its pods.

`enableDNSHostnames: false` makes JobSet create no headless Service and set no host names, so that
no address in TF_CONFIG resolves. JobSet's default is true; absent is fine.
"""

from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule

PATH: raw.Path = ("spec", "template", "spec", "network", "enableDNSHostnames")


def check(case: Case) -> Iterator[Finding]:
    """Find the value false."""
    if raw.at(case.content, PATH) is False:
        yield Finding(path=PATH, what="is false", fix="`enableDNSHostnames: true`, or no such line")


RULE = Rule(
    id="TFA002",
    name="dns-hostnames",
    subjects=frozenset({"runtime"}),
    level="deny",
    why="without host names no address in TF_CONFIG resolves",
    check=check,
)
