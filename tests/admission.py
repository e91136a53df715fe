"""Run admission in the test process: a pod in, the admitted pod out.

The patch is applied with the independent implementation `jsonpatch`.
"""

import copy
from collections.abc import Iterable
from typing import Any

import jsonpatch

import builders
from tfadmit_webhook import facts, handler, lookup, review, workload
from tfadmit_webhook.decision import Decision
from tfadmit_webhook.settings import Settings


def context(
    *objects: Any, settings: Settings | None = None, reader: facts.ClusterReader | None = None
) -> lookup.Context:
    runtimes = [item for item in objects if str(item.get("kind")).endswith("Runtime")]
    others = [item for item in objects if item not in runtimes]
    return lookup.Context(
        reader=reader or facts.StaticReader(views(others), runtimes=runtimes),
        settings=settings or Settings(),
        remaining=lambda: 5.0,
    )


def views(objects: Iterable[Any]) -> list[facts.Workload]:
    return [
        (workload.job if item.get("kind") == "Job" else workload.jobset)(item) for item in objects
    ]


def decide(
    path: str, content: Any, *, given: lookup.Context | None = None, **request: Any
) -> Decision:
    parsed = review.parse(builders.body(builders.make_review(content, **request)))
    return handler.HANDLERS[path](parsed, given or context(builders.make_jobset()))


def admit(
    content: Any,
    *objects: Any,
    settings: Settings | None = None,
    path: str = "/mutate/pods",
    **request: Any,
) -> Any:
    """The object after admission; a refusal fails the test with its message."""
    given = context(*(objects or (builders.make_jobset(),)), settings=settings)
    decision = decide(path, content, given=given, **request)
    assert decision.allowed, decision.message
    return apply(content, decision)


def apply(content: Any, decision: Decision) -> Any:
    return jsonpatch.apply_patch(copy.deepcopy(content), list(decision.patch))


def env(pod: Any, container: int = 0) -> dict[str, str]:
    entries = pod["spec"]["containers"][container]["env"]
    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names)), f"doubles in {names}"
    return {entry["name"]: entry.get("value", "") for entry in entries}
