"""Following a job that was just submitted: its logs, its states, and the exit code they make."""

import os
import sys
from typing import Final

from tfadmit_client.console import terminal
from tfadmit_client.logs import follow as followed
from tfadmit_client.logs import printing, source

SUCCEEDED: Final = 0
FAILED: Final = 1
INTERRUPTED: Final = 130


def follow(cluster: source.Cluster, *, namespace: str, name: str) -> int:
    """Print what all tasks print until the job ends; give the exit code.

    Ctrl-C ends the following and not the job.

    Raises:
        OutputError: what was printed cannot be written. The job goes on.
    """
    options = followed.Options(tell=terminal.say)
    follower = followed.Follower(cluster, namespace=namespace, name=name, options=options)
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    printer = printing.Printer(coloured=coloured, timestamps=False)
    try:
        for line in follower.lines():
            terminal.out(printer.text(line))
    except KeyboardInterrupt:
        again = f"tfadmit logs -n {namespace}{cluster.flags} -f {name}"
        terminal.say(f"{name} goes on; `{again}` follows it again")
        return INTERRUPTED
    final = follower.final
    return SUCCEEDED if final and final.state.word == "Succeeded" else FAILED
