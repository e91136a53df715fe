"""The functions beneath the commands, for notebooks and programs.

    from tfadmit_client import api

    name = api.submit(["python", "train.py"], workers=4, gpu=1, namespace="team")
    for job in api.jobs(namespace="team"):
        print(job.name, job.state.text, job.reason.text)
    for line in api.logs("mnist", namespace="team", follow=True):
        print(line.replica, line.text)
    api.pull("mnist", "results", namespace="team")

Each call connects by the kubeconfig, or in a pod by its service account; `kubeconfig` and `context`
say otherwise. Errors are `fault.ClientError` with a sentence, `fault.ClusterError` when nobody
answers.
"""

import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfadmit_client import fault
from tfadmit_client.cluster import live_jobs
from tfadmit_client.jobs import change, find, option, read
from tfadmit_client.jobs import remove as jobs_remove
from tfadmit_client.logs import choose, once
from tfadmit_client.logs import follow as following
from tfadmit_client.logs.line import Line
from tfadmit_client.submit import options, submitting
from tfadmit_client.watch import job as watched


def submit(
    command: Sequence[str],
    *,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
    **said: object,
) -> str:
    """Submit a program; gives the name of the job.

    `said` are the options of `tfadmit run` by their names: `workers=4`, `gpu_type="A100"`,
    `env={"EPOCHS": 10}`, `data=["train=s3://…"]`, `evaluator=True`, `patch={…}`.

    Raises:
        ClientError: it is refused, and nothing was created.
    """
    named = {name.replace("_", "-"): value for name, value in said.items()}
    content = {**named, "command": list(command)}
    wanted = options.from_mapping(content, source="submit")
    steps = submitting.Submitting(
        environ=os.environ, kubeconfig=kubeconfig, context=context, namespace=namespace
    )
    with option.answering():
        connection, ready = steps.prepare(wanted)
        steps.finish(connection, ready)
    return ready.name


def jobs(
    *,
    namespace: str | None = None,
    all_namespaces: bool = False,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> list[watched.Job]:
    """Give all jobs of a namespace (default: the context's) or of all, each with its state."""
    cluster = live_jobs.connect(kubeconfig=kubeconfig, context=context)
    where = None if all_namespaces else namespace or cluster.default_namespace
    with option.answering():
        return [watched.safe(item) for item in read.everything(cluster, namespace=where).jobs]


def job(
    name: str,
    *,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> watched.Job:
    """Give one job.

    Raises:
        ClientError: there is none.
    """
    cluster, where = _connected(namespace, kubeconfig=kubeconfig, context=context)
    with option.answering():
        (found,) = find.one(cluster, namespace=where, name=name).jobs
    return watched.safe(found)


def logs(
    name: str,
    *,
    replicas: Sequence[str] = (),
    follow: bool = False,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> Iterator[Line]:
    """Give the lines of all tasks, or of some; with `follow`, until the job ends.

    Raises:
        ClientError: there is no such job, or a log cannot be read.
    """
    cluster, where = _connected(namespace, kubeconfig=kubeconfig, context=context)
    choice = choose.Choice(replicas=replicas)
    with option.answering():
        if follow:
            options = following.Options(choice=choice)
            follower = following.Follower(cluster, namespace=where, name=name, options=options)
            yield from follower.lines()
            return
        (found,) = find.one(cluster, namespace=where, name=name).jobs
        choose.check(choice, found)
        yield from once.lines(cluster, found, choice, failed=_refuse)


def stop(
    name: str,
    *,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> str:
    """Stop a job; gives what has happened, as a sentence."""
    cluster, where = _connected(namespace, kubeconfig=kubeconfig, context=context)
    with option.answering():
        return change.stop(cluster, change.Target(namespace=where, name=name))


def start(
    name: str,
    *,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> str:
    """Let a stopped job go on; gives what has happened, as a sentence."""
    cluster, where = _connected(namespace, kubeconfig=kubeconfig, context=context)
    with option.answering():
        return change.start(cluster, change.Target(namespace=where, name=name))


def remove(
    name: str,
    *,
    wait: float = jobs_remove.WAIT_SECONDS,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> str:
    """Delete a job with all that belongs to it; one that is not there is fine."""
    cluster, where = _connected(namespace, kubeconfig=kubeconfig, context=context)
    target = change.Target(namespace=where, name=name)
    with option.answering():
        return jobs_remove.remove(cluster, target, wait=wait)


def pull(
    name: str,
    folder: str | os.PathLike[str] = "",
    *,
    base: str = "",
    partial: bool = False,
    namespace: str | None = None,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> tuple[str, ...]:
    """Bring model, checkpoints and logs of a job here; gives what was brought, in sentences.

    `base` says where they are saved without asking a cluster; `partial` also takes a model that is
    not whole. Needs the extra `s3`.

    Raises:
        ClientError: nothing is saved, or it cannot be read, and why.
    """
    from tfadmit_client.pull import pulling  # noqa: PLC0415 - its extra is not everybody's

    connect = functools.partial(_connected, namespace, kubeconfig=kubeconfig, context=context)
    wish = pulling.Wish(job=name, folder=Path(folder or name), partial=partial, base=base)
    done = pulling.run(wish, connect=connect, environ=os.environ, say=_silently)
    return tuple(done.lines)


def _connected(
    namespace: str | None, *, kubeconfig: str | None, context: str | None
) -> tuple[live_jobs.Jobs, str]:
    """Give the cluster, and the namespace that is meant: the context's unless one is named."""
    cluster = live_jobs.connect(kubeconfig=kubeconfig, context=context)
    return cluster, namespace or cluster.default_namespace


def _silently(text: str) -> None:
    """Say nothing: a program shows what it wants of the result."""


def _refuse(text: str) -> None:
    raise fault.ClientError(text)
