"""The command `tfadmit logs`: what all tasks of a job print, now or as it comes."""

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from tfadmit_client import fault
from tfadmit_client.cluster import live_jobs
from tfadmit_client.console import terminal
from tfadmit_client.jobs import find, option
from tfadmit_client.jobs import read as jobs_read
from tfadmit_client.logs import choose, follow, once, printing, saved_logs, source
from tfadmit_client.logs.line import Line
from tfadmit_client.watch import detail, job, seen, task

_INTERRUPTED = 130
_EPILOG = """\
examples:
  %(prog)s mnist                   all tasks, one after the other
  %(prog)s mnist -f                all tasks as they print, until the job ends
  %(prog)s mnist worker-1 ps       one worker and all parameter servers
  %(prog)s mnist --attempt 0       what was printed before all tasks were started again

Pods that are gone have no logs: then those are shown that were saved beside the results.

Exit codes: 0 done; 1 with -f, the job failed or was deleted; 2 refused, or the usage is wrong;
3 the cluster does not answer, or a log could not be read; 130 interrupted: the job goes on.
"""


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit logs",
    connect: Callable[..., source.Cluster] = live_jobs.connect,
    saved: Callable[[], saved_logs.SavedLogs | None] = saved_logs.find,
) -> int:
    """Run the command."""
    # Intermixed: `logs mnist -f worker-1` is as good as `logs -f mnist worker-1`.
    arguments = _parser(prog).parse_intermixed_args(argv)
    cluster, namespace = option.connected(arguments, connect)
    command = _Command(cluster, namespace, arguments, saved=saved)
    try:
        with option.answering():
            return command.follow() if arguments.follow else command.show()
    except KeyboardInterrupt:
        again = f"tfadmit logs -n {namespace}{cluster.flags} -f {arguments.job}"
        goes_on = f"; {arguments.job} goes on, `{again}` follows it again"
        print(f"interrupted{goes_on if arguments.follow else ''}", file=sys.stderr)
        return _INTERRUPTED


class _Command:
    """One call of the command."""

    def __init__(
        self,
        cluster: source.Cluster,
        namespace: str,
        arguments: argparse.Namespace,
        *,
        saved: Callable[[], saved_logs.SavedLogs | None],
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._name: str = arguments.job
        self._arguments = arguments
        self._saved = saved
        self._choice = choose.Choice(
            replicas=arguments.tasks, container=arguments.container, attempt=arguments.attempt
        )
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._printer = printing.Printer(coloured=coloured, timestamps=arguments.timestamps)
        self._unread = 0

    def follow(self) -> int:
        """Print until the job ends."""
        follower = follow.Follower(
            self._cluster,
            namespace=self._namespace,
            name=self._name,
            options=follow.Options(
                choice=self._choice, tail=self._arguments.tail, tell=terminal.say
            ),
        )
        self._print(follower.lines())
        return 0 if follower.final and follower.final.state.word == "Succeeded" else 1

    def show(self) -> int:
        """Print what there is."""
        reading = jobs_read.one(self._cluster, namespace=self._namespace, name=self._name)
        if not reading.jobs:
            return self._show_saved(None)
        for text in reading.gaps:
            terminal.say(f"not all is known: {text}")
        (found,) = reading.jobs
        self._printer.width = max((len(item.name) for item in task.tasks(found)), default=0)
        choose.check(self._choice, found)
        lines = once.lines(
            self._cluster, found, self._choice, tail=self._arguments.tail, failed=self._failed
        )
        if not self._print(lines) and not self._unread:
            return self._show_saved(found)
        return 3 if self._unread else 0

    def _show_saved(self, found: seen.Seen | None) -> int:
        """Print what was saved of a job whose pods are gone, or say why there is nothing."""
        if found and any(True for _ in choose.runs(found, self._choice)):
            return 0  # there are logs, and they are empty
        refused = ""
        for base in self._bases(found):
            refused = self._print_saved(base)
            if not refused:
                return 0
        if found is None:
            absent = find.absent(self._cluster, namespace=self._namespace, name=self._name)
            raise fault.ClientError(f"{absent}; {refused}" if refused else str(absent))
        self._say_none(found, refused)
        return 2 if refused else 0

    def _print_saved(self, base: str) -> str:
        """Print what was saved there; gives why there is nothing."""
        if (read := self._saved()) is None:
            return "this installation cannot read saved logs"
        asked = self._choice
        lines = read(base, self._name, attempt=asked.attempt, replicas=asked.replicas)
        try:
            first = next(lines, None)
        except fault.ClusterError:
            raise
        except fault.ClientError as error:
            return str(error)
        terminal.say(f"the pods are gone; this was saved in {base.rstrip('/')}/{self._name}/")
        self._print(itertools.chain([first] if first else [], lines))
        return ""

    def _say_none(self, found: seen.Seen, refused: str) -> None:
        """Say why there are no logs."""
        now = job.safe(found)
        reason = f": {now.reason.text}" if now.reason.text else ""
        hint = "" if now.ended else "; -f waits for them"
        terminal.say(f"there are no logs: {self._name} is {now.state.text}{reason}{hint}")
        if refused:
            terminal.say(refused)

    def _bases(self, found: seen.Seen | None) -> list[str]:
        """Give where the job may have been saved."""
        if self._arguments.saved:
            return [self._arguments.saved]
        if found:
            noted = detail.output_base(found)
            return [noted] if noted else []
        return saved_logs.bases(self._cluster, namespace=self._namespace)

    def _failed(self, text: str) -> None:
        self._unread += 1
        terminal.say(text)

    def _print(self, lines: Iterator[Line]) -> int:
        write = printing.as_json if self._arguments.output == "json" else self._printer.text
        number = 0
        for line in lines:
            print(write(line), flush=self._arguments.follow)
            number += 1
        return number


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Print what the tasks of a job print, each line with its task in front.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("job", metavar="JOB", type=option.job_name, help="the name of a TrainJob")
    add("tasks", metavar="TASK", nargs="*", help="`worker-1`, or a role; default: all")
    add("-f", "--follow", action="store_true", help="from now on until the job ends")
    add("--attempt", metavar="K", type=_count, help="only this attempt, from 0")
    add("--tail", metavar="N", type=_count, help="only the last N lines of each log")
    add("--timestamps", action="store_true", help="the time in front of each line")
    add("-c", "--container", metavar="NAME", default="", help="another one than the program's")
    add("--saved", metavar="URI", default="", help="where results were saved: `run --output`")
    option.add(parser)
    add("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    return parser


def _count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is no number from 0 on")
    return int(word)
