"""`tfadmit certs rotate`: ask for a new CA or leaf, and see it through.

Here: argparse, asking by an annotation, waiting with progress. The work is done by `tfadmit certs
run` in the cluster. I/O: standard output, and the API server by `secret`.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from tfadmit_certs import fault, options

if TYPE_CHECKING:
    from tfadmit_certs import secret, state

# Of a look, which is four small requests.
_POLL_SECONDS = 0.5
# A controller that runs takes it up within a second, one that takes over within 15.
_TAKEN_SECONDS = 20.0
# Phases in which nothing is on its way: a retired CA only waits for its last leaf to end.
_AT_REST = ("steady", "retire")

_EPILOG = """\
No call fails meanwhile. A new CA needs a minute until every API server has it (`settle` in the
settings); the old one stays trusted until its last leaf has ended.

examples:
  %(prog)s
  %(prog)s --leaf --no-wait
"""


class RotateError(fault.CertsError):
    """A rotation that cannot begin."""


class StuckError(fault.CertsError):
    """A rotation that does not end."""

    code = 1


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    command = commands.add_parser(
        "rotate",
        help="replace the CA or the leaf of a cluster now",
        description="Replace the CA (and with it the leaf), or the leaf alone, of a cluster now.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument("--ca", dest="which", action="store_const", const="ca", default="ca",
                      help="the CA and the leaf (the default)")  # fmt: skip
    what.add_argument(
        "--leaf", dest="which", action="store_const", const="leaf", help="the leaf alone"
    )
    option = command.add_argument
    option("--no-wait", action="store_true", help="ask for it and do not wait")
    option(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=600.0,
        help="how long to wait (default: 600)",
    )
    options.add_output(command)
    options.add_names(command)
    options.add_connection(command)


def execute(arguments: argparse.Namespace, *, clock: Callable[[], datetime]) -> int:
    """Run the command; the result is the exit code."""
    # Here and not above, because they load the libraries and `--help` must not wait for them.
    from tfadmit_certs import secret, standing, state  # noqa: PLC0415

    names = options.names(arguments)
    store = secret.Store(options.connect(arguments), names=names)
    before = store.look()
    _refuse(before, arguments.which, label=names.label(arguments.which))
    store.annotate(arguments.which, {state.ROTATE: arguments.which})
    quiet = arguments.output == "json"
    if not quiet:
        print(f"asked for a new {'CA' if arguments.which == 'ca' else 'leaf'}", flush=True)
    if arguments.no_wait:
        if quiet:
            print(json.dumps({"asked": arguments.which}))
        return 0
    after = _wait(store, before, arguments, quiet=quiet)
    if quiet:
        print(standing.as_json(standing.judged(after, names=names, lease=None, now=clock())))
    return 0


def _refuse(view: "state.View", which: str, *, label: str) -> None:
    from tfadmit_certs import judge  # noqa: PLC0415 - see above

    secret = view.authority if which == "ca" else view.leaf
    if secret is None:
        raise RotateError(
            f"Secret {label} does not exist: there is nothing to rotate; see tfadmit certs status"
        )
    if secret.refusal:
        raise RotateError(secret.refusal)
    phase = judge.phase(view)
    asked = _asked(view)
    if asked or phase not in _AT_REST:
        what = "was asked for" if asked else f"is running (phase {phase})"
        raise RotateError(f"a rotation {what} already: tfadmit certs status shows it")


def _wait(
    store: "secret.Store", before: "state.View", arguments: argparse.Namespace, *, quiet: bool
) -> "state.View":
    from tfadmit_certs import judge, kube  # noqa: PLC0415 - see above

    began, shown, told = time.monotonic(), "", False
    while True:
        elapsed = time.monotonic() - began
        if elapsed > arguments.timeout:
            raise StuckError(
                f"not done after {arguments.timeout:.0f} s (phase {shown or 'unknown'}): "
                "tfadmit certs status says what is wrong"
            )
        try:
            view = store.look()
        except kube.ApiError as error:
            print(f"{error}; asking again", file=sys.stderr)
            time.sleep(_POLL_SECONDS)
            continue
        phase = judge.phase(view)
        if _done(before, view, arguments.which) and phase in _AT_REST:
            if not quiet:
                print(f"done after {elapsed:.0f} s", flush=True)
            return view
        if phase != shown and phase not in _AT_REST and not quiet:
            print(f"{phase:8} {_MEANING[phase]}", flush=True)
        shown = phase
        if not told and elapsed > _TAKEN_SECONDS and _asked(view):
            told = True
            print(
                "nobody has taken it up yet: is tfadmit-certs running? "
                f"kubectl -n {arguments.namespace} get deploy tfadmit-certs",
                file=sys.stderr,
            )
        time.sleep(_POLL_SECONDS)


_MEANING = {
    "publish": "the new CA goes into every caBundle",
    "settle": "every API server gets the time to hear of it",
    "promote": "the new CA becomes the one that signs",
    "reissue": "the new CA signs a leaf",
}


def _done(before: "state.View", after: "state.View", which: str) -> bool:
    if which == "leaf":
        old, new = before.leaf, after.leaf
        return bool(new and new.certificate and not new.trouble) and (
            old is None or new is None or old.certificate != new.certificate
        )
    return bool(
        before.authority
        and after.authority
        and after.authority.current.certificate
        and before.authority.current.certificate != after.authority.current.certificate
    )


def _asked(view: "state.View") -> bool:
    return bool(view.authority and view.authority.asked) or bool(view.leaf and view.leaf.asked)


def _seconds(text: str) -> float:
    if not text.isdecimal() or not 1 <= int(text[:6]) <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 86400")
    return float(text)
