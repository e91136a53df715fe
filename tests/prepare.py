"""`python -m prepare` in tests/: build and install now what the tests would when they come to it.

Beside the fast tests, which use one core, this takes a quarter of an hour off a first run. A step
that fails is told and nothing more: the tests that need it say the same, and count.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from harness import addons, binaries, cache, gang, object_store, tools, upstream, virtualenv
from harness.node import images, machine, programs
from training import environment

# In the order in which the tests come to them.
STEPS: tuple[Callable[[], object], ...] = (
    object_store.program,
    environment.tensorflow,
    environment.tensorflow_keras2,
    binaries.find,
    addons.crds,
    gang.crds,
    upstream.trainer_runtimes,
    lambda: virtualenv.locked("kubeflow.lock", note="a few seconds and 100 MB"),
    lambda: _nodes(programs.find),
    *(
        lambda recipe=recipe: _nodes(lambda: recipe.build(cache.to_stderr))
        for recipe in (images.WEBHOOK, images.TRANSFER, images.TENSORFLOW, images.TRAINING)
    ),
)


def main() -> None:
    """Take every step that can be taken."""
    for step in STEPS:
        _take(step)


def _take(step: Callable[[], object]) -> None:
    try:
        step()
    except tools.UnavailableError as error:
        cache.to_stderr(str(error))
    except Exception:  # noqa: BLE001 - the tests that need it fail, and tell more
        traceback.print_exc()


def _nodes(step: Callable[[], object]) -> None:
    if reason := machine.why_not():
        raise tools.UnavailableError(reason)
    step()


if __name__ == "__main__":
    main()
