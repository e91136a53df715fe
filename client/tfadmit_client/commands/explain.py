"""The command `tfadmit explain`: a rule, its background, and a failing and a passing example.

The texts are those of the rules' own files; the page of rules in docs/ is written from them too.
"""

import argparse
import importlib
from collections.abc import Sequence
from importlib import resources

from tfadmit_client import fault
from tfadmit_webhook import policy

_EXAMPLES = ("failing", "passing")
_PAGE_HEAD = """\
# Rules

What tfadmit demands of a TensorFlow runtime and of the TrainJobs on it, and why. The same
rules are applied by the webhook, by `tfadmit lint` and by `tfadmit preview`. Levels are settings
(`policies: {TFA008: deny}`, see [settings.md](settings.md)): `deny` refuses, `warn` lets pass with
a warning, `off` does not look.

This page is written by `tfadmit explain --markdown`.
"""


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit explain") -> int:
    """Run the command."""
    arguments = _parser(prog).parse_args(argv)
    if arguments.markdown:
        print(page(), end="")
    elif arguments.rule is None:
        print(_list())
    else:
        print(_explain(_find(arguments.rule)), end="")
    return 0


def page() -> str:
    """Write the page of rules."""
    rules = policy.rules()
    rows = [
        f"| [{rule.id}](#{_anchor(rule)}) | {_objects(rule)} | {rule.level} | {rule.name} |"
        for rule in rules
    ]
    table = "\n".join(["| rule | on | level | |", "|---|---|---|---|", *rows])
    return "\n".join([_PAGE_HEAD, table, "", *map(_section, rules)])


def background(rule: policy.Rule) -> tuple[str, str]:
    """Give what a rule demands, in a sentence, and why, from the docstring of its file."""
    text = importlib.import_module(rule.check.__module__).__doc__ or ""
    first, _, rest = text.strip().partition("\n\n")
    demand = first.partition(": ")[2]
    return demand[:1].upper() + demand[1:], rest.strip()


def example(rule: policy.Rule, kind: str) -> str:
    """Give the manifests that fail or pass a rule: a runtime, or a runtime and a TrainJob on it."""
    folder = resources.files("tfadmit_webhook.policy").joinpath("examples")
    return folder.joinpath(f"{rule.id}-{kind}.yaml").read_text(encoding="utf-8")


def _find(word: str) -> policy.Rule:
    for rule in policy.rules():
        if word.upper() == rule.id or word.lower() == rule.name:
            return rule
    known = ", ".join(rule.id for rule in policy.rules())
    raise fault.ClientError(f"there is no rule {word!r}; the rules are {known}")


def _list() -> str:
    return "\n".join(f"{rule.id}  {rule.level:4}  {rule.name}" for rule in policy.rules())


def _explain(rule: policy.Rule) -> str:
    demand, why = background(rule)
    head = f"{rule.id} {rule.name}, level {rule.level}\n\n{demand}\n\n{why}\n"
    parts = [f"\n# {kind}\n{example(rule, kind)}" for kind in _EXAMPLES]
    return "".join([head, *parts])


def _section(rule: policy.Rule) -> str:
    demand, why = background(rule)
    parts = [f"{kind.capitalize()}:\n\n```yaml\n{example(rule, kind)}```\n" for kind in _EXAMPLES]
    return "\n".join([f"## {rule.id} {rule.name}\n", f"{demand}\n", f"{why}\n", *parts])


def _objects(rule: policy.Rule) -> str:
    names = {"runtime": "runtime", "trainjob": "TrainJob"}
    return ", ".join(names[subject] for subject in sorted(rule.subjects))


def _anchor(rule: policy.Rule) -> str:
    return f"{rule.id} {rule.name}".lower().replace(" ", "-")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Explain a rule: what it demands, why, and an example that fails and one that "
        "passes. Without a rule, list them.",
    )
    parser.add_argument("rule", metavar="RULE", nargs="?", help="TFA007, or success-policy")
    parser.add_argument(
        "--markdown", action="store_true", help="write the page of all rules (docs/rules.md)"
    )
    return parser
