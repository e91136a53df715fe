"""The command `tfadmit run`: a folder and a command line become a job, which is then followed.

Here: the order of the steps, and what is printed. Options are read in `run_options`; what they
become is `submit`; who is asked is `live`.
"""

import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tfadmit_client import (
    cluster_objects,
    fault,
    following,
    listing,
    live,
    live_jobs,
    run_local,
    run_options,
    yamlout,
)
from tfadmit_client.submit import code, create, objects, options, pack, plan, refusals, repeat, wish
from tfadmit_webhook import raw

# No vowels and nothing that looks like something else, as Kubernetes makes its names.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
# Room for the names of the pods, which begin with the job's.
_BASE: Final = 24
# `kubectl apply` writes the object into one of its annotations, which have 256 KiB together.
_APPLIED_BYTES: Final = 250_000


def random_suffix() -> str:
    """Give what makes the name of a job unique."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_SUFFIX))


def main(
    argv: Sequence[str] | None = None,
    *,
    prog: str = "tfadmit run",
    connect: Callable[..., live.Live] = live.connect,
    environ: Mapping[str, str] = os.environ,
    suffix: Callable[[], str] = random_suffix,
) -> int:
    """Run the command."""
    words = run_options.parse(sys.argv[1:] if argv is None else argv, prog=prog)
    try:
        return _Run(words, connect=connect, environ=environ, suffix=suffix).run()
    except listing.UnreachableError as error:
        raise fault.ClusterError(str(error)) from error
    except listing.ReadError as error:
        raise fault.ClientError(str(error)) from error


class _Run:
    """One run in a cluster."""

    def __init__(
        self,
        words: run_options.Words,
        *,
        connect: Callable[..., live.Live],
        environ: Mapping[str, str],
        suffix: Callable[[], str],
    ) -> None:
        self._words = words
        self._connect = connect
        self._environ = environ
        self._suffix = suffix

    def run(self) -> int:
        if self._words.local:
            return self._here()
        said, packed = self._words.said, None
        if self._words.earlier is None:
            # What can be known without a cluster is known before one is asked.
            wished = wish.read(said, environ=self._environ)
            found, packed = code.of(said.code or code.HERE, wished.command)
        connection = self._connect(kubeconfig=self._words.kubeconfig, context=self._words.context)
        namespace = self._words.namespace or connection.default_namespace
        cluster = cluster_objects.Objects(connection.wire())
        if self._words.earlier is not None:
            said, found = self._again(cluster, namespace=namespace)
            wished = wish.read(said, environ=self._environ)
        name = wished.name or self._name(said)
        planned = self._plan(cluster, wished, namespace=namespace)
        made = objects.submission(planned, found, name=name, namespace=namespace, said=said)
        self._judge(cluster, made, planned, namespace=namespace)
        create.attempt(cluster, made, namespace=namespace)
        if self._words.dry_run:
            self._print([made.config_map, made.trainjob])
            return 0
        job = create.create(cluster, made, namespace=namespace)
        _say(f"TrainJob {namespace}/{name} created{_told(packed)}")
        if self._words.output:
            self._print([job])
        elif self._words.detach:
            print(name)
        if self._words.detach:
            return 0
        return following.follow(live_jobs.Jobs(connection), namespace=namespace, name=name)

    def _here(self) -> int:
        """Run on this machine; no cluster is asked."""
        said = self._words.said
        wished = wish.read(said, environ=self._environ)
        found, _ = code.of(said.code or code.HERE, wished.command)
        return run_local.run(
            wished,
            found,
            name=wished.name or self._name(said),
            by_flags=self._words.by_flags,
            environ=self._environ,
        )

    def _again(
        self, cluster: create.Cluster, *, namespace: str
    ) -> tuple[options.Options, objects.Code]:
        """Take the options and the code of an earlier job; what is said now comes first."""
        earlier, found = repeat.said(cluster, namespace=namespace, name=self._words.earlier or "")
        said = options.merged(over=self._words.said, under=earlier)
        if self._words.said.code is not None:
            found, _ = code.of(self._words.said.code, said.command)
        return said, found

    def _name(self, said: options.Options) -> str:
        if self._words.earlier:
            base = repeat.base(self._words.earlier)
        else:
            folder = said.code if said.code not in (None, wish.NO_CODE) else code.HERE
            base = Path(folder or code.HERE).resolve().name
        letters = "".join(char if char.isalnum() and char.isascii() else "-" for char in base)
        short = letters.lower().lstrip("-0123456789")[:_BASE].rstrip("-")
        return f"{short or 'job'}-{self._suffix()}"

    def _plan(self, cluster: create.Cluster, wished: wish.Wish, *, namespace: str) -> plan.Plan:
        on = create.runtime(
            cluster,
            namespace=namespace,
            name=wished.runtime,
            has_roles=any(wished.roles.values()),
        )
        planned = plan.make(wished, on)
        for note in planned.notes:
            _say(f"note: {note}")
        return planned

    def _judge(
        self,
        cluster: create.Cluster,
        made: objects.Submission,
        planned: plan.Plan,
        *,
        namespace: str,
    ) -> None:
        judged = refusals.judge(made, planned, namespace=namespace)
        for warning in judged.warnings:
            _say(f"warning: {warning}")
        refused = [*judged.refused, *create.mistakes(cluster, planned, namespace=namespace)]
        if refused:
            raise fault.ClientError("\n".join(refused))

    def _print(self, found: Sequence[raw.JsonObject]) -> None:
        if self._words.output == "json":
            content = found[0] if len(found) == 1 else _list(found)
            print(json.dumps(content, indent=2, ensure_ascii=False))
            return
        for item in found:
            text = yamlout.dump(item, width=sys.maxsize)
            print(f"---\n{text}", end="")
            if self._words.dry_run and len(text) > _APPLIED_BYTES:
                _say("note: for kubectl apply this is too large; use kubectl apply --server-side")


def _list(found: Sequence[raw.JsonObject]) -> raw.JsonObject:
    return {"apiVersion": "v1", "kind": "List", "items": list(found)}


def _told(packed: pack.Packed | None) -> str:
    if packed is None:
        return ""
    files = sum(entry.size > 0 or entry.target is not None for entry in packed.entries.values())
    skipped = f"; left out, being no files: {', '.join(packed.skipped)}" if packed.skipped else ""
    return f" ({files} files of code, {pack.amount(len(packed.content))} packed{skipped})"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
