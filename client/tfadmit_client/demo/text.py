"""The words of the demonstration. Pure: what was sent and what came back in, lines out."""

import json
import textwrap
from collections.abc import Iterator, Sequence

from tfadmit_client.demo.review import Answer
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_WIDTH = 98
_NCCL = "NCCL_"
# As in deploy/base/webhooks.yaml; kubectl shows it to whoever is refused.
REFUSING_WEBHOOK = "runtimes.validate.tfadmit.dev"


def without_comments(text: str) -> Iterator[str]:
    """Give the lines of a manifest that are not comments."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#") and line.strip() != "---":
            yield line


def runtime(answer: Answer) -> Iterator[str]:
    """Tell what became of a good runtime."""
    yield f"allowed; its framework label is copied to {len(answer.patch)} places, down to the pods:"
    for operation in answer.patch:
        yield f"  {operation['path'].replace('~1', '/')}"


def pod(answer: Answer) -> Iterator[str]:
    """Tell everything that one pod was given."""
    yield _head(answer)
    env = _added(answer)
    for name, value in env.items():
        if name != contract.TF_CONFIG_ENV:
            yield f"  {name}={_short(name, value)}"
    yield from _kept(answer)
    yield f"  {contract.TF_CONFIG_ENV}="
    yield from textwrap.indent(_pretty(env[contract.TF_CONFIG_ENV]), "    ").splitlines()
    yield f"  annotation {contract.STATUS_ANNOTATION}: {json.dumps(_status(answer))}"
    yield from _network(answer)


def other_pod(answer: Answer, first: Answer) -> str:
    """Tell of another pod only what differs."""
    env, known = _added(answer), _added(first)
    config = json.loads(env.pop(contract.TF_CONFIG_ENV))
    same = config["cluster"] == json.loads(known[contract.TF_CONFIG_ENV])["cluster"]
    shown = config if not same else {"task": config["task"]}
    differing = [f"{name}={env[name]}" for name in env if env[name] != known.get(name)]
    differing.append(f"{contract.TF_CONFIG_ENV} with {json.dumps(shown)[1:-1]}")
    return f"{_head(answer)}: {', '.join(differing)}; the rest is the same"


def network(answer: Answer, *, resource: str) -> Iterator[str]:
    """Tell what a pod was given for its network."""
    yield f"{_head(answer)}; its container requests {resource}, so it gets in addition"
    for name, value in _added(answer).items():
        if name.startswith(_NCCL):
            yield f"  {name}={value}"
    yield from (line for line in _kept(answer) if line.lstrip().startswith(_NCCL))
    yield from _network(answer)


def refusal(answer: Answer, *, path: str) -> Iterator[str]:
    """Write a refusal as kubectl shows it."""
    yield f"$ kubectl apply -f {path}"
    text = (
        f'Error from server ({answer.reason}): error when creating "{path}": '
        f'admission webhook "{REFUSING_WEBHOOK}" denied the request: {answer.message}'
    )
    for line in text.splitlines():
        yield from textwrap.wrap(line, _WIDTH - 3, break_long_words=False, break_on_hyphens=False)


def next_steps(*, command: str, runtime_path: str, trainjob_path: str) -> Iterator[str]:
    """Tell what to do next; `command` is how `tfadmit` is called here."""
    yield f"your own files, no cluster:  {command} preview -f RUNTIME.yaml -f TRAINJOB.yaml"
    yield f"these examples:              {command} preview -f {runtime_path} {trainjob_path}"
    yield "install it in a cluster:     deploy/README.md in the repository"


def round_trips(answers: Sequence[Answer]) -> str:
    """Tell how long the reviews took."""
    times = sorted(answer.milliseconds for answer in answers)
    middle = times[len(times) // 2]
    return (
        f"{len(answers)} reviews over verified TLS on this machine: median {middle:.1f} ms, "
        f"longest {times[-1]:.1f} ms"
    )


def _head(answer: Answer) -> str:
    status = _status(answer)
    name = raw.at(answer.result, ("spec", "hostname"))
    return f"{name} is {status.get('role')} {status.get('index')}"


def _status(answer: Answer) -> raw.JsonObject:
    return raw.mapping(json.loads(_annotations(answer).get(contract.STATUS_ANNOTATION, "{}")))


def _kept(answer: Answer) -> Iterator[str]:
    """Give the variables of the kind we add that the runtime has itself."""
    added = _added(answer)
    for container in raw.sequence(raw.at(answer.result, ("spec", "containers"))):
        for item in raw.sequence(raw.mapping(container).get("env")):
            name = raw.text(raw.mapping(item).get("name"))
            if name.startswith(("TF_", _NCCL)) and name not in added:
                yield f"  {name}={raw.mapping(item).get('value')}  (the runtime's own, kept)"


def _short(name: str, value: str) -> str:
    """Shorten a list of addresses; TF_CONFIG shows them one by one."""
    first, *others = value.split(",")
    return f"{first},…  ({len(others) + 1} addresses)" if others and "HOSTS" in name else value


def _annotations(answer: Answer) -> dict[str, str]:
    return raw.strings(raw.at(answer.result, ("metadata", "annotations")))


def _added(answer: Answer) -> dict[str, str]:
    """Give the variables that the patch adds."""
    added: dict[str, str] = {}
    for operation in answer.patch:
        if "/env" in operation["path"]:
            value = operation["value"]
            entries = value if isinstance(value, list) else [value]
            added |= {entry["name"]: entry["value"] for entry in entries}
    return added


def _network(answer: Answer) -> Iterator[str]:
    networks = _annotations(answer).get(contract.NETWORKS_ANNOTATION)
    if networks:
        yield f"  annotation {contract.NETWORKS_ANNOTATION}: {networks}"


def _pretty(tf_config: str) -> str:
    """Write TF_CONFIG with one address a line and the task in one line."""
    document = json.loads(tf_config)
    cluster = json.dumps(document["cluster"], indent=2).replace("\n", "\n  ")
    return f'{{\n  "cluster": {cluster},\n  "task": {json.dumps(document["task"])}\n}}'
