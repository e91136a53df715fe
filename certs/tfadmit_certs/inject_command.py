"""`tfadmit certs inject`: a CA that was handed over into caBundle of our webhooks, once.

For certificates that come from elsewhere (the overlay `files`). Here: argparse, checking the file,
applying, printing. I/O: the file, standard output, the API server by `secret`.
"""

import argparse
import contextlib
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tfadmit_certs import fault, options

if TYPE_CHECKING:
    from tfadmit_certs import secret, state

_EPILOG = """\
The file may hold several CAs: while one is replaced, give the old and the new one together, bring
the new certificate to the servers, then give the new one alone.

example:
  %(prog)s --ca-file ca.crt
"""
# Somebody may write the configurations at the same moment, but not again and again.
_ATTEMPTS = 5


class InjectError(fault.CertsError):
    """A CA that cannot be injected."""


class NothingError(fault.CertsError):
    """No webhook that calls our server."""

    code = 1


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    command = commands.add_parser(
        "inject",
        help="write a CA of your own into the webhook configurations of a cluster",
        description="Write a CA of your own into caBundle of every webhook that calls the server. "
        "Only that field is written, by server-side apply.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "--ca-file", metavar="FILE", type=Path, required=True, help="PEM: one CA or several"
    )
    options.add_output(command)
    options.add_names(command)
    options.add_connection(command)


def execute(arguments: argparse.Namespace, *, now: datetime) -> int:
    """Run the command; the result is the exit code."""
    # Here and not above, because they load the libraries and `--help` must not wait for them.
    from tfadmit_certs import secret  # noqa: PLC0415

    pem = _read(arguments.ca_file, now=now)
    names = options.names(arguments)
    store = secret.Store(options.connect(arguments), names=names)
    view = store.look()
    if view.authority:
        raise InjectError(
            f"Secret {names.label('ca')} exists: tfadmit-certs writes caBundle here and would put "
            "its own CA back. Install the overlay files and delete this Secret first"
        )
    if not any(item.hooks for item in view.configurations):
        raise NothingError(
            f"no webhook of the configurations {names.configuration} calls the Service "
            f"{names.namespace}/{names.service}: apply the manifests first"
        )
    _warn(view, pem, label=names.label("leaf"), now=now)
    done = _inject(store, view, pem=pem)
    if arguments.output == "json":
        print(json.dumps({"injected": [{"kind": kind, "webhook": name} for kind, name in done]}))
    else:
        print("\n".join(f"caBundle of {name} ({kind}) is set" for kind, name in done))
    return 0


def _read(path: Path, *, now: datetime) -> bytes:
    """The CAs of the file, without what else stands in it."""
    from tfadmit_certs import bundle  # noqa: PLC0415 - see above

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InjectError(f"--ca-file {path}: cannot be read: {error.strerror or error}") from error
    found = bundle.parse(content, where=f"--ca-file {path}")
    for certificate in found:
        if problems := bundle.authority_problems(certificate, now=now):
            name = bundle.describe(certificate).common_name or "a certificate"
            raise InjectError(
                f"--ca-file {path}: {name}: {'; '.join(problems)}.\n  give the certificate of the "
                "CA that signed the server's, without the server's own"
            )
    return bundle.render(found)


def _warn(view: "state.View", pem: bytes, *, label: str, now: datetime) -> None:
    """Tell when the certificate in the cluster is not signed by this CA: calls would fail."""
    from tfadmit_certs import bundle  # noqa: PLC0415 - see above

    certificate = view.leaf.certificate if view.leaf else None
    if certificate is None:
        return
    leaf = bundle.render([certificate])
    if problems := bundle.chain_problems(leaf=leaf, ca=pem, now=now):
        print(f"warning: Secret {label}: {'; '.join(problems)}", file=sys.stderr)


def _inject(store: "secret.Store", view: "state.View", *, pem: bytes) -> list[tuple[str, str]]:
    from tfadmit_certs import kube  # noqa: PLC0415 - see above

    left = [item for item in view.configurations if item.hooks]
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(kube.ConflictError):
            while left:
                store.publish(left[0], pem=pem)
                left.pop(0)
            break
        names = {item.kind for item in left}
        left = [item for item in store.look().configurations if item.kind in names and item.hooks]
    with contextlib.suppress(kube.ConflictError):
        for item in store.look().configurations:
            if item.owned is not None:
                store.disown(item)
    if left:
        raise InjectError("the webhook configurations change all the time: try again")
    return [(item.kind, hook.name) for item in view.configurations for hook in item.hooks]
