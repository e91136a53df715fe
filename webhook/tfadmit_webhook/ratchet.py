"""Whether an update of a runtime or a TrainJob changes anything that policies judge.

An object that was already in violation may still get finalizers, a status, or be deleted; only a
changed spec is judged. Pure comparison of two raw objects.
"""

from tfadmit_trainer import contract
from tfadmit_webhook import raw


def is_labelled(runtime: raw.JsonObject) -> bool:
    """Whether a runtime carries the framework label."""
    labels = raw.strings(raw.at(runtime, ("metadata", "labels")))
    return labels.get(contract.FRAMEWORK_LABEL) == contract.FRAMEWORK


def unchanged(old: raw.JsonObject, new: raw.JsonObject) -> bool:
    """Whether an update changes nothing that is judged.

    The labels that we add ourselves do not count: a runtime from before tfadmit gets them at its
    first update, which may be a controller's that adds a finalizer.
    """
    return is_labelled(old) and _unlabelled(old) == _unlabelled(new)


def unchanged_trainjob(old: raw.JsonObject, new: raw.JsonObject) -> bool:
    """Whether an update of a TrainJob changes nothing that is judged.

    No rule looks at `suspend`: Kueue starts and stops a TrainJob whatever else is wrong with it.
    Its queue counts: what may be asked for there is less.
    """
    return _judged_trainjob(old) == _judged_trainjob(new)


def _judged_trainjob(trainjob: raw.JsonObject) -> object:
    spec = raw.mapping(trainjob.get("spec"))
    queue = raw.strings(raw.at(trainjob, ("metadata", "labels"))).get(contract.QUEUE_LABEL)
    return {key: value for key, value in spec.items() if key != "suspend"}, queue


def _unlabelled(runtime: raw.JsonObject) -> object:
    return _without_label(raw.mapping(runtime.get("spec")))


def _without_label(value: object) -> object:
    if isinstance(value, dict):
        kept = {
            key: _without_label(item)
            for key, item in value.items()
            if key != contract.FRAMEWORK_LABEL
        }
        # An empty map is what remains where only our label was.
        return {key: item for key, item in kept.items() if item not in ({}, None)}
    if isinstance(value, list):
        return [_without_label(item) for item in value]
    return value
