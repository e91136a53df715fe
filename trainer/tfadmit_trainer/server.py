"""A parameter server, or a worker that computes for the chief: ends when the chief has ended.

TensorFlow's own servers never end by themselves, which leaves parameter servers running after every
training. The exit code is 0 however the chief ended: the server did its work, and whether the
training succeeded is told by the chief's own code alone. A code of its own would fail a training
whose chief ended well, or count a failure twice. TensorFlow is imported inside of functions.
"""

import os
import signal
import time
from types import FrameType
from typing import Final

from tfadmit_trainer import chief_watch, exits, resolver, start, voice
from tfadmit_trainer.chief_watch import ChiefWatch
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.fault import SetupError
from tfadmit_trainer.untyped import Unknown

_LOOK_SECONDS: Final = 0.5
_SAY_SECONDS: Final = 60.0


def serve(context: TaskContext, *, deadline: float | None = None) -> int:
    """Serve until the chief has ended; give the exit code.

    Args:
        context: this task, a ps or worker of a training with ps.
        deadline: seconds until a chief that never came is given up.

    Raises:
        SetupError: there is no chief to serve.
    """
    if not context.cluster.size("chief"):
        raise SetupError(
            "a training with ps needs a chief, which coordinates it: add a replicatedJob with role "
            "chief. Without one all ps and workers would wait for ever"
        )
    start.together(context, deadline=deadline)
    asked = _on_sigterm()
    server = _server(context)
    voice.say(f"{context.role} {context.index} serves, {server.target}")
    code = _until_end(
        chief_watch.of(context),
        asked=asked,
        deadline=start.seconds(os.environ) if deadline is None else deadline,
    )
    _say_end(code, context=context)
    return code


def _server(context: TaskContext) -> Unknown:
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    if context.role == "ps":
        # Variables live in main memory; the GPUs of the node are the workers'.
        tf.config.set_visible_devices([], "GPU")
    return tf.distribute.Server(
        resolver.of(context).cluster_spec(),
        job_name=context.role,
        task_index=context.index,
        protocol="grpc",
        start=True,
    )


class _Asked:
    """Whether SIGTERM came. Not a lock: a handler may run in the middle of anything."""

    yet = False


def _on_sigterm() -> _Asked:
    asked = _Asked()

    def handle(_number: int, _frame: FrameType | None) -> None:
        asked.yet = True

    signal.signal(signal.SIGTERM, handle)
    return asked


def _until_end(watch: ChiefWatch, *, asked: _Asked, deadline: float) -> int:
    """Wait in the main thread, where signals are handled; `join()` would block them."""
    began = said = time.monotonic()
    while not watch.ended.wait(_LOOK_SECONDS):
        now = time.monotonic()
        if asked.yet:
            return exits.TERMINATED
        if watch.seen.is_set():
            continue
        if now - began >= deadline:
            return exits.PEERS_MISSING
        if now - said >= _SAY_SECONDS:
            said = now
            voice.say(f"waiting for the chief to start, {now - began:.0f} s")
    return exits.OK


def _say_end(code: int, *, context: TaskContext) -> None:
    who = f"{context.role} {context.index}"
    sentence = {
        exits.OK: f"{who} ends, because the chief has ended",
        exits.TERMINATED: f"{who} was asked to end (SIGTERM)",
        exits.PEERS_MISSING: (
            f"{who} gave up: the chief ({chief_watch.address(context)}) did not start in time. Its "
            "log says why; is its pod Running?"
        ),
    }[code]
    # TensorFlow's server is not made to be stopped: a regular end may wait for its threads.
    exits.leave(code, sentence)
