"""Where the results of `tfadmit run` go by default, and whether a namespace has the credentials.

A part of `check`. The store itself is not asked: credentials stay in the cluster, where the init
container of each job tries them before the program starts.
"""

from collections.abc import Iterator, Sequence

from tfadmit_client import fault
from tfadmit_client.check.line import Cluster, Line
from tfadmit_client.check.runtimes import Runtime
from tfadmit_client.cluster import listing
from tfadmit_client.submit import site
from tfadmit_trainer import contract


def check(
    cluster: Cluster, runtimes: Sequence[Runtime] | None, *, namespace: str
) -> Iterator[Line]:
    """Look at what the runtimes say of results, and for their Secrets in the namespace."""
    if runtimes is None:
        return
    ours = [item for item in runtimes if item.framework == contract.FRAMEWORK]
    told = [line for item in ours for line in _line(cluster, item, namespace=namespace)]
    yield from told
    if not told:
        text = f"no runtime says where results go (annotation {contract.DEFAULT_OUTPUT_ANNOTATION})"
        yield Line(
            state="note",
            text=f"{text}: they go with their pods, unless `tfadmit run --output` says",
        )


def _line(cluster: Cluster, runtime: Runtime, *, namespace: str) -> Iterator[Line]:
    label = runtime.label
    try:
        said = site.read(runtime.content, label=label)
    except fault.ClientError as error:
        yield Line(state="fail", text=f"`tfadmit run` refuses all jobs of {label}: {error}")
        return
    if not said.output:
        return
    text = f"results of {label} go to {said.output}"
    if not said.store_secret:
        yield Line(state="ok", text=f"{text}, with the rights of the pods' service account")
        return
    named = f"Secret {said.store_secret}"
    try:
        cluster.secret(namespace, said.store_secret)
    except listing.StatusError as error:
        if error.status != 404:
            text = f"{text}; whether namespace {namespace} has the {named} cannot be seen: {error}"
            yield Line(state="note", text=text)
            return
        fix = (
            f"jobs there fail before they start; `kubectl create secret generic {said.store_secret}"
        )
        yield Line(
            state="warn",
            text=f"{text}, and namespace {namespace} has no {named}; {fix} -n {namespace}"
            f"{cluster.flags} …` (docs/data-and-results.md)",
        )
        return
    yield Line(state="ok", text=f"{text}, and namespace {namespace} has the {named}")
