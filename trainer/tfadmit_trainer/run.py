"""`tfadmit-run`: set up, wait for the others, then become the program.

The program takes the place of this process (exec), so signals, process group and exit code are its
own by construction; there is no parent that could lose one. Its own reason of failure is not
ours to write: `terminationMessagePolicy: FallbackToLogsOnError` shows the end of its log. Here is
the order of the steps and how a failure before the program ends.
"""

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Final, NoReturn

from tfadmit_trainer import (
    barrier,
    configure,
    encoding,
    fault,
    options,
    program,
    termination,
    voice,
)
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.fault import CommandError, StartError
from tfadmit_trainer.host import Host
from tfadmit_trainer.options import Options
from tfadmit_trainer.waiting import Tools

# As process 1 of a container Linux ignores what has no handler; Kubernetes would then wait out the
# grace period of a task that is itself only waiting.
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run; give the exit code when there was no program to become."""
    chosen = options.parse(argv, environ=os.environ)
    host = Host(say=voice.quiet) if chosen.quiet else Host()
    try:
        with _ending_by_signal():
            return _run(chosen, host)
    except StartError as error:
        return _failed(error, host)


def _run(chosen: Options, host: Host) -> int:
    if chosen.check:
        check = importlib.import_module("tfadmit_trainer.check")
        return int(check.main(host, output=chosen.output))
    context = configure.setup(host=host)
    serves = chosen.server and _serves(context, chosen)
    if chosen.barrier:
        tools = Tools(say=host.say)
        barrier.wait(context, timeout=chosen.barrier_timeout, tools=tools)
    if serves:
        return _serve(context)
    return program.become(chosen.command, environment(context, host.environ))


def environment(context: TaskContext, environ: Mapping[str, str]) -> dict[str, str]:
    """Give the program's environment: what was found out goes on to it.

    So a program that calls `setup()` as well does not search again, and one with too many tasks
    for TF_CONFIG still gets them.
    """
    env = dict(environ)
    if context.source in ("jobset", "discovery"):
        found = encoding.environment(context.task, max_inline_bytes=0)
        env.update({name: value for name, value in found.items() if not env.get(name)})
    return env


def _serves(context: TaskContext, chosen: Options) -> bool:
    """Whether this task is a server; the chief and the evaluator are not."""
    if context.role in ("ps", "worker") and context.cluster.size("ps"):
        return True
    if chosen.command:
        return False
    raise fault.SetupError(
        f"--server is for ps and workers of a training with parameter servers; this is "
        f"{context.role} {context.index}, which has a program to run: tfadmit-run --server -- "
        "python train.py"
    )


def _serve(context: TaskContext) -> int:
    try:
        server = importlib.import_module("tfadmit_trainer.server")
        return int(server.serve(context) or 0)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tensorflow":
            raise
        raise CommandError(
            f"--server needs TensorFlow, which this Python ({sys.executable}) does not have: use "
            "the image of the training for ps and workers too",
            exit_code=fault.NOT_FOUND,
        ) from error


@contextlib.contextmanager
def _ending_by_signal() -> Iterator[None]:
    """While the block runs, signals end it with the exit code of a shell."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        # os.write, not print: the signal may have come in the middle of one.
        name = signal.Signals(number).name
        os.write(2, f"[tfadmit] ended by {name} while starting\n".encode())
        raise SystemExit(fault.BY_SIGNAL + number)

    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _failed(error: StartError, host: Host) -> int:
    code = error.exit_code
    voice.say(f"{error}\n[tfadmit] exit code {code}")
    if trouble := termination.write(str(error), environ=host.environ):
        voice.say(trouble)
    return code


if __name__ == "__main__":
    sys.exit(main())
