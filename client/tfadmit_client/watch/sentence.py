"""What components of the cluster say, without what a person does not need to read.

Pure text in, text out. Each form is that of the component named beside it; a text of another form
is kept as it is.
"""

import re

from tfadmit_client.watch.reason import Reason

# Longer than most terminals are wide; the whole text stands in `-o json` of the objects.
_MOST = 400
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request: (.*)')
_SILENT = re.compile(r'failed calling webhook "([^"]+)": (?:failed to call webhook: )?(.*)')
_QUOTA = re.compile(r"exceeded quota: ([^,]+), (.*)")
_FORBIDDEN = re.compile(r'\w[\w.]* "[^"]*" is forbidden: (.*)')
_PREFIXES = re.compile(
    r"(?:Error creating: |TrainJob resources reconciliation failed: |Internal error occurred: "
    r"|rpc error: code = \w+ desc = |failed to create [^:]+: )+"
)
# kube-scheduler: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had …. preemption: …";
# with dynamic resource allocation ". no new claims to deallocate, preemption: …".
_NODES = re.compile(r"(\d+/\d+ nodes) are available: (.*?)(?:\. (?:[^.:]*, )?preemption: .*|\.)?")
# What the kubelet puts in front of the reason while it waits for the next try.
_BACK_OFF = re.compile(r'Back-off pulling image "[^"]*"(?:: ErrImagePull)?(?:: )?')
_TAINT = re.compile(r"node\(s\) had untolerated taints?(?:\(s\))? ?\{([^}]*)\}")


def refusal(message: str) -> Reason:
    """Read why an object could not be created: a webhook, a quota, or another reason."""
    text = _PREFIXES.sub("", message, count=1)
    if found := _DENIED.search(text):
        return Reason(code="refused", text=cut(f"refused by {found[1]}: {found[2]}"))
    if found := _SILENT.search(text):
        return Reason(code="webhook-down", text=cut(f"the webhook {found[1]} fails: {found[2]}"))
    if found := _QUOTA.search(text):
        return Reason(code="quota", text=cut(f"quota {found[1]} is used up: {found[2]}"))
    if found := _FORBIDDEN.search(text):
        return Reason(code="refused", text=cut(found[1]))
    return Reason(code="not-created", text=cut(text))


def unschedulable(message: str) -> str:
    """Shorten what the scheduler says: `0/3 nodes: 3 Insufficient nvidia.com/gpu`."""
    if found := _NODES.fullmatch(message.strip()):
        return cut(f"{found[1]}: {_TAINT.sub(lambda taint: f'taint {taint[1]}', found[2])}")
    return cut(message)


def image(reason: str, name: str, message: str) -> Reason:
    """Say why an image is not there; the words for it are the registry's and the runtime's."""
    message = _BACK_OFF.sub("", message, count=1)
    low = message.lower()
    if reason == "InvalidImageName":
        return Reason(code="image", text=f"the name of image {name} is invalid")
    if reason == "ErrImageNeverPull":
        return Reason(code="image", text=f"image {name} is not on the node and is never pulled")
    if any(word in low for word in ("unauthorized", "authentication", "denied", "forbidden")):
        hint = "no right to pull it, or not there; is an imagePullSecret needed?"
        return Reason(code="image", text=f"image {name}: {hint}")
    if any(word in low for word in ("not found", "manifest unknown", "does not exist")):
        return Reason(code="image", text=f"image not found: {name}")
    said = _PREFIXES.sub("", message, count=1)
    return Reason(code="image", text=cut(f"image {name} cannot be pulled" + (said and f": {said}")))


def last_words(message: str, *, from_log: bool) -> str:
    """Take the line that says what went wrong out of a termination message.

    Of a traceback that is the first line after the frames; what TensorFlow adds in more lines comes
    after it. Without one it is the first line, or the last of what the kubelet took from the log.
    """
    _, traceback, after = message.rpartition("Traceback (most recent call last):")
    lines = [line.rstrip() for line in (after if traceback else message).splitlines()]
    lines = [line for line in lines if line.strip()]
    if traceback and (found := [line for line in lines if not line[0].isspace()]):
        return cut(found[0])
    at = -1 if traceback or from_log else 0
    return cut(lines[at]) if lines else ""


def cut(text: str) -> str:
    """Make one line of a text, and end it where it is too long to read."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST else f"{line[: _MOST - 2]} …"
