"""Where the results of `tfadmit run` go by default, and whether a namespace has the credentials.

A part of `check`. The store itself is not asked: credentials stay in the cluster, where the init
container of each job tries them before the program starts.
"""

from collections.abc import Iterator

from tfadmit_client import audit_report, fault, listing
from tfadmit_client.check_line import Cluster, Line
from tfadmit_client.submit import site
from tfadmit_trainer import contract
from tfadmit_webhook import raw


def check(cluster: Cluster, *, namespace: str) -> Iterator[Line]:
    """Look at what the runtimes say of results, and for their Secrets in the namespace."""
    try:
        runtimes = list(_runtimes(cluster))
    except listing.UnreachableError:
        raise
    except listing.ReadError:
        return  # told by the judging of all objects
    told = False
    for label, content in runtimes:
        for line in _line(cluster, label, content, namespace=namespace):
            told = True
            yield line
    if not told:
        text = f"no runtime says where results go (annotation {contract.DEFAULT_OUTPUT_ANNOTATION})"
        yield Line(
            state="note",
            text=f"{text}: they go with their pods, unless `tfadmit run --output` says",
        )


def _runtimes(cluster: Cluster) -> Iterator[tuple[str, raw.JsonObject]]:
    for kind in audit_report.KINDS:
        if not kind.name.endswith("Runtime"):
            continue
        for item in listing.objects(cluster, kind, namespace=None):
            content = raw.mapping(item)
            metadata = raw.mapping(content.get("metadata"))
            labels = raw.strings(metadata.get("labels"))
            if labels.get(contract.FRAMEWORK_LABEL) == contract.FRAMEWORK:
                where, name = raw.text(metadata.get("namespace")), raw.text(metadata.get("name"))
                yield audit_report.label(kind.name, where, name), content


def _line(
    cluster: Cluster, label: str, content: raw.JsonObject, *, namespace: str
) -> Iterator[Line]:
    try:
        said = site.read(content, label=label)
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
            text=f"{text}, and namespace {namespace} has no {named}; {fix} -n {namespace} …` "
            "(docs/data-and-results.md)",
        )
        return
    yield Line(state="ok", text=f"{text}, and namespace {namespace} has the {named}")
