"""The steps of submitting: read, pack, plan, judge, try, create. For `run` and for programs.

Here: their order, and nothing printed. Options are `submit.options`; who is asked is `live`.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tfadmit_client import fault
from tfadmit_client.cluster import live, live_jobs
from tfadmit_client.submit import (
    asked,
    cluster_objects,
    code,
    code_store,
    create,
    existing,
    objects,
    options,
    pack,
    plan,
    refusals,
    repeat,
    wish,
)
from tfadmit_webhook import raw

# No vowels and nothing that looks like something else, as Kubernetes makes its names.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
# Room for the names of the pods, which begin with the job's.
_BASE: Final = 24


def random_suffix() -> str:
    """Give what makes the name of a job unique."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_SUFFIX))


def _nothing(_text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A job that could be created: everybody was asked."""

    name: str
    namespace: str
    made: objects.Submission
    packed: pack.Packed | None
    """What was packed now; None where the code is an earlier job's, or in the image."""

    stored: objects.Stored | None = None
    """Where the code belongs before the job is created, being too large for a ConfigMap."""

    secret: str = ""
    """The Secret with the credentials for that."""


@dataclass(frozen=True, kw_only=True)
class Submitting:
    """Who submits, and to where."""

    environ: Mapping[str, str]
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    say: Callable[[str], None] = _nothing
    """Is told what a user should know and need not mend."""

    bar: Callable[[str], None] | None = None
    """Draws how far an upload of code is, where somebody looks on."""

    connect: Callable[..., live.Live] = live.connect
    suffix: Callable[[], str] = random_suffix

    def prepare(
        self, said: options.Options, *, earlier: str | None = None
    ) -> tuple[live.Live, Ready]:
        """Make ready what options say; `earlier` is a job to repeat.

        Raises:
            ClientError: it cannot work, and what would. Nothing was created.
            ReadError: the cluster cannot be asked.
        """
        if earlier is None:
            # What can be known without a cluster is known before one is asked.
            wished = wish.read(said, environ=self.environ)
            found, packed = code.of(said.code or code.HERE, wished.command)
        connection = self.connect(kubeconfig=self.kubeconfig, context=self.context)
        namespace = self.namespace or connection.default_namespace
        cluster = cluster_objects.Objects(connection.wire())
        if earlier is not None:
            said, found, packed = _again(cluster, said, namespace=namespace, name=earlier)
            wished = wish.read(said, environ=self.environ)
        for warning in code.warnings(packed):
            self.say(f"warning: {warning}")
        name = wished.name or name_for(said, earlier=earlier, suffix=self.suffix())
        planned = self._plan(cluster, wished, namespace=namespace)
        found = code.placed(found, packed, folder=said.code or code.HERE, output=planned.output)
        made = objects.submission(planned, found, name=name, namespace=namespace, said=said)
        self._judge(cluster, made, planned, namespace=namespace)
        create.attempt(cluster, made, namespace=namespace)
        return connection, Ready(
            name=name,
            namespace=namespace,
            made=made,
            packed=packed,
            stored=found.stored if packed else None,
            secret=planned.store_secret,
        )

    def finish(self, connection: live.Live, ready: Ready) -> raw.JsonObject:
        """Create a job; gives it as it was created.

        Raises:
            ClientError: it is refused after all. Nothing is left over.
        """
        if ready.stored and ready.packed:
            self._upload(connection, ready, ready.stored, ready.packed.content)
        cluster = cluster_objects.Objects(connection.wire())
        return create.create(cluster, ready.made, namespace=ready.namespace)

    def _upload(
        self, connection: live.Live, ready: Ready, stored: objects.Stored, content: bytes
    ) -> None:
        store = code_store.opened(
            live_jobs.Jobs(connection),
            stored.base,
            namespace=ready.namespace,
            secret=ready.secret,
            environ=self.environ,
            bar=self.bar,
        )
        self.say(f"{pack.amount(len(content))} of code go to {stored.uri}")
        if not code.upload(store, stored, content):
            self.say("they are there already")

    def _plan(self, cluster: asked.Cluster, wished: wish.Wish, *, namespace: str) -> plan.Plan:
        on = existing.runtime(
            cluster,
            namespace=namespace,
            name=wished.runtime,
            roles=wished.roles,
        )
        planned = plan.make(wished, on)
        for note in planned.notes:
            self.say(f"note: {note}")
        return planned

    def _judge(
        self,
        cluster: asked.Cluster,
        made: objects.Submission,
        planned: plan.Plan,
        *,
        namespace: str,
    ) -> None:
        judged = refusals.judge(made, planned, namespace=namespace)
        for warning in judged.warnings:
            self.say(f"warning: {warning}")
        refused = [*judged.refused, *existing.mistakes(cluster, planned, namespace=namespace)]
        if refused:
            raise fault.ClientError("\n".join(refused))


def name_for(said: options.Options, *, earlier: str | None = None, suffix: str) -> str:
    """Make a name: of the job that is repeated, else of the folder."""
    if earlier:
        base = repeat.base(earlier)
    else:
        folder = said.code if said.code not in (None, wish.NO_CODE) else code.HERE
        base = Path(folder or code.HERE).resolve().name
    letters = "".join(char if char.isalnum() and char.isascii() else "-" for char in base)
    short = letters.lower().lstrip("-0123456789")[:_BASE].rstrip("-")
    return f"{short or 'job'}-{suffix}"


def _again(
    cluster: asked.Cluster, said: options.Options, *, namespace: str, name: str
) -> tuple[options.Options, objects.Code, pack.Packed | None]:
    """Take the options and the code of an earlier job; what is said now comes first."""
    earlier, found = repeat.said(cluster, namespace=namespace, name=name)
    merged = options.merged(over=said, under=earlier)
    if said.code is None:
        return merged, found, None
    return merged, *code.of(said.code, merged.command)
