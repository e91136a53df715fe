"""What the Kubeflow SDK needs of a cluster, so that data scientists can use it.

A part of `check`. The SDK reads one public ConfigMap, and it lists *all* runtimes or none: one of
any framework that it cannot read makes it fail for everybody.
"""

from collections.abc import Iterator, Sequence

from tfadmit_client.check.line import Cluster, Line
from tfadmit_client.check.runtimes import Runtime
from tfadmit_client.cluster import listing
from tfadmit_trainer import contract
from tfadmit_webhook import policy, raw
from tfadmit_webhook.settings import Settings

# kubeflow 0.5 looks here unless KUBEFLOW_SYSTEM_NAMESPACE says otherwise.
_NAMESPACE, _PUBLIC, _KEY = "kubeflow-system", "kubeflow-trainer-public", "kubeflow_trainer_version"
_RULES = ("TFA004", "TFA013", "TFA024")
# Of TFA004 the absence of a policy, which stands at the policy itself.
_POLICY: raw.Path = ("spec", "mlPolicy")
_SHOWN = 3


def check(cluster: Cluster, runtimes: Sequence[Runtime] | None) -> Iterator[Line]:
    """Look at the ConfigMap, at who may read it, and at the runtimes, if they could be read."""
    yield _public(cluster)
    if runtimes is not None:
        yield from _runtimes(runtimes)


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


def _runtimes(runtimes: Sequence[Runtime]) -> Iterator[Line]:
    broken: list[str] = []
    unlabelled: list[str] = []
    for item in runtimes:
        faults = list(_faults(item.content))
        if not item.framework:
            unlabelled.append(item.label)
        elif faults:
            broken.append(f"{item.label}, {faults[0]}")
    if broken:
        text = f"the Kubeflow SDK fails to list runtimes wherever it sees {_few(broken)}"
        yield Line(state="fail", text=f"{text}; `tfadmit explain TFA013` has the background")
    else:
        yield Line(state="ok", text=f"the Kubeflow SDK can read all runtimes: {len(runtimes)}")
    if unlabelled:
        text = f"the Kubeflow SDK passes over {_few(unlabelled)}"
        yield Line(state="warn", text=f"{text}; the label {contract.FRAMEWORK_LABEL} is missing")


def _faults(content: raw.JsonObject) -> Iterator[str]:
    for item in policy.judge_runtime(content, settings=Settings()):
        path = item.finding.path
        if item.rule.id in _RULES and (item.rule.id != "TFA004" or path == _POLICY):
            yield f"{raw.dotted(path)} {item.finding.what}"


def _few(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
