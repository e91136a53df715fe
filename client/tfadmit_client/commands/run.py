"""The command `tfadmit run`: a folder and a command line become a job, which is then followed.

Here: which way it goes, and what is printed. Options are read in `run_options`, the steps of
submitting are `submitting`, those on this machine `local.running`.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tfadmit_client import fault
from tfadmit_client.cluster import listing, live, live_jobs
from tfadmit_client.commands import run_options
from tfadmit_client.console import interrupts, plain, terminal
from tfadmit_client.files import yamlout
from tfadmit_client.local import running
from tfadmit_client.logs import following
from tfadmit_client.submit import code, pack, submitting, wish
from tfadmit_webhook import raw

# `kubectl apply` writes the object into one of its annotations, which have 256 KiB together.
_APPLIED_BYTES: Final = 250_000


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit run",
    connect: Callable[..., live.Live] = live.connect,
    environ: Mapping[str, str] = os.environ,
    suffix: Callable[[], str] = submitting.random_suffix,
) -> int:
    """Run the command."""
    words = run_options.parse(sys.argv[1:] if argv is None else argv, prog=prog)
    if words.local:
        return _here(words, environ=environ, suffix=suffix)
    steps = submitting.Submitting(
        environ=environ,
        kubeconfig=words.kubeconfig,
        context=words.context,
        namespace=words.namespace,
        say=terminal.say,
        bar=None if words.output else terminal.bar(),
        connect=connect,
        suffix=suffix,
    )
    try:
        with interrupts.as_ctrl_c():
            return _submit(words, steps)
    except listing.UnreachableError as error:
        raise fault.ClusterError(str(error)) from error
    except listing.ReadError as error:
        raise fault.ClientError(str(error)) from error


def _here(
    words: run_options.Words, *, environ: Mapping[str, str], suffix: Callable[[], str]
) -> int:
    """Run on this machine; no cluster is asked."""
    wished = wish.read(words.said, environ=environ)
    # Of any size that is code at all: nothing travels.
    found, packed = code.of(words.said.code or code.HERE, wished.command)
    for warning in code.warnings(packed):
        terminal.say(f"warning: {warning}")
    return running.run(
        wished,
        found,
        name=wished.name or submitting.name_for(words.said, suffix=suffix()),
        by_flags=words.by_flags,
        environ=environ,
    )


def _submit(words: run_options.Words, steps: submitting.Submitting) -> int:
    connection, ready = steps.prepare(words.said, earlier=words.earlier)
    if words.dry_run:
        print(_rendered([ready.made.config_map, ready.made.trainjob], words, applied=True))
        if ready.stored:
            terminal.say(f"note: the code belongs at {ready.stored.uri}, and only a run uploads it")
        return 0
    job = steps.finish(connection, ready)
    terminal.say(f"TrainJob {ready.namespace}/{ready.name} created{_told(ready.packed)}")
    try:
        return _tell(job, words, ready, connection)
    except terminal.OutputError as error:
        again = f"tfadmit logs -n {ready.namespace}{connection.flags} -f {ready.name}"
        terminal.say(f"{error}; {ready.name} was created and goes on, `{again}` follows it")
        return error.code


def _tell(
    job: raw.JsonObject, words: run_options.Words, ready: submitting.Ready, connection: live.Live
) -> int:
    """Print what was asked for of a job that is there now, and follow it."""
    if words.output:
        terminal.out(_rendered([job], words, applied=False))
    elif words.detach:
        terminal.out(ready.name)
    if words.detach:
        return 0
    jobs = live_jobs.Jobs(connection)
    return following.follow(jobs, namespace=ready.namespace, name=ready.name)


def _rendered(found: Sequence[raw.JsonObject], words: run_options.Words, *, applied: bool) -> str:
    if words.output == "json":
        content = found[0] if len(found) == 1 else _list(found)
        return plain.in_json(json.dumps(content, indent=2, ensure_ascii=False))
    written = []
    for item in found:
        text = yamlout.dump(item, width=sys.maxsize)
        written.append("---\n" + text.removesuffix("\n"))
        if applied and len(text) > _APPLIED_BYTES:
            terminal.say(
                "note: for kubectl apply this is too large; use kubectl apply --server-side"
            )
    return "\n".join(written)


def _list(found: Sequence[raw.JsonObject]) -> raw.JsonObject:
    return {"apiVersion": "v1", "kind": "List", "items": list(found)}


def _told(packed: pack.Packed | None) -> str:
    if packed is None:
        return ""
    files = sum(not entry.is_folder for entry in packed.entries.values())
    counted = "1 file" if files == 1 else f"{files:,} files"
    skipped = f"; left out, being no files: {', '.join(packed.skipped)}" if packed.skipped else ""
    return f" ({counted} of code, {pack.amount(len(packed.content))} packed{skipped})"
