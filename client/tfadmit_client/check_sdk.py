"""What the Kubeflow SDK needs of a cluster, so that data scientists can use it.

A part of `check`. The SDK reads one public ConfigMap, and it lists *all* runtimes or none: one of
any framework that it cannot read makes it fail for everybody.
"""

from collections.abc import Iterator

from tfadmit_client import audit_report, listing
from tfadmit_client.check_line import Cluster, Line
from tfadmit_trainer import contract
from tfadmit_webhook import policy, raw
from tfadmit_webhook.settings import Settings

# kubeflow 0.5 looks here unless KUBEFLOW_SYSTEM_NAMESPACE says otherwise.
_NAMESPACE, _PUBLIC, _KEY = "kubeflow-system", "kubeflow-trainer-public", "kubeflow_trainer_version"
_RULES = ("TFA004", "TFA013", "TFA024")
# Of TFA004 the absence of a policy, which stands at the policy itself.
_POLICY: raw.Path = ("spec", "mlPolicy")
_SHOWN = 3


def check(cluster: Cluster) -> Iterator[Line]:
    """Look at the ConfigMap, at who may read it, and at the runtimes."""
    yield _public(cluster)
    yield from _runtimes(cluster)


def _public(cluster: Cluster) -> Line:
    label = f"ConfigMap {_NAMESPACE}/{_PUBLIC}"
    try:
        data = raw.strings(cluster.config_map(_NAMESPACE, _PUBLIC).get("data"))
        version = data.get(_KEY, "")
        bound = _is_bound(cluster)
    except listing.StatusError as error:
        text = f"the Kubeflow SDK warns at each start: {label} cannot be read: {error}"
        return Line(
            state="warn",
            text=f"{text}; Trainer's manifests bring it, with a Role of that name; where Trainer "
            "is elsewhere, set KUBEFLOW_SYSTEM_NAMESPACE for the SDK",
        )
    if not version:
        return Line(
            state="warn", text=f"the Kubeflow SDK warns at each start: {label} has no {_KEY}"
        )
    if not bound:
        text = f"others may not read {label}, and the Kubeflow SDK warns them at each start"
        return Line(
            state="warn", text=f"{text}; Trainer's manifests have the RoleBinding {_PUBLIC}"
        )
    return Line(state="ok", text=f"the Kubeflow SDK finds Trainer {version} in {label}")


def _is_bound(cluster: Cluster) -> bool:
    try:
        cluster.role_binding(_NAMESPACE, _PUBLIC)
    except listing.StatusError as error:
        # Who may not look at bindings has read the ConfigMap as one of those who are meant.
        return error.status != 404
    return True


def _runtimes(cluster: Cluster) -> Iterator[Line]:
    broken: list[str] = []
    unlabelled: list[str] = []
    count = 0
    for kind in audit_report.KINDS:
        if not kind.name.endswith("Runtime"):
            continue
        try:
            for item in listing.objects(cluster, kind, namespace=None):
                count += 1
                name = _label(kind, raw.mapping(item))
                faults = list(_faults(raw.mapping(item)))
                if not _framework(item):
                    unlabelled.append(name)
                elif faults:
                    broken.append(f"{name}, {faults[0]}")
        except listing.UnreachableError:
            raise
        except listing.ReadError:
            return  # told by the judging of all objects
    if broken:
        text = f"the Kubeflow SDK fails to list runtimes wherever it sees {_few(broken)}"
        yield Line(state="fail", text=f"{text}; `tfadmit explain TFA013` has the background")
    else:
        yield Line(state="ok", text=f"the Kubeflow SDK can read all runtimes: {count}")
    if unlabelled:
        text = f"the Kubeflow SDK passes over {_few(unlabelled)}"
        yield Line(state="warn", text=f"{text}; the label {contract.FRAMEWORK_LABEL} is missing")


def _faults(content: raw.JsonObject) -> Iterator[str]:
    for item in policy.judge_runtime(content, settings=Settings()):
        path = item.finding.path
        if item.rule.id in _RULES and (item.rule.id != "TFA004" or path == _POLICY):
            yield f"{raw.dotted(path)} {item.finding.what}"


def _framework(item: object) -> str:
    labels = raw.strings(raw.at(item, ("metadata", "labels")))
    return labels.get(contract.FRAMEWORK_LABEL, "")


def _label(kind: listing.Kind, content: raw.JsonObject) -> str:
    metadata = raw.mapping(content.get("metadata"))
    namespace, name = raw.text(metadata.get("namespace")), raw.text(metadata.get("name"))
    return audit_report.label(kind.name, namespace, name)


def _few(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
