"""The start of a task: which task this is, and TF_CONFIG for TensorFlow.

Here is what is done with the cluster, wherever it comes from (`sources`): it is compared with the
own host name, told to the log, and handed to TensorFlow where that is safe.
"""

import os
from typing import Final

from tfadmit_trainer import context, contract, discovery, encoding, late, pattern, sources
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.contract import Task
from tfadmit_trainer.fault import SetupError
from tfadmit_trainer.host import Host

# MAX_ARG_STRLEN: one string `NAME=value` of the environment, with its closing zero byte. A longer
# one makes every child process of the program fail with E2BIG.
_MOST_BYTES: Final = 131_072


def setup(*, host: Host | None = None, attempts: int = discovery.ATTEMPTS) -> TaskContext:
    """Find out which task this is, and set TF_CONFIG for TensorFlow.

    Call it before the first TensorFlow operation. The cluster comes from, in this order: a
    TF_CONFIG of the user's own; what tfadmit's webhook wrote; what JobSet wrote and the user handed
    on (`downward`); names in DNS (`discovery`); else the task is alone. The log says which was
    taken and why.

    Args:
        host: the world outside; this machine when left out.
        attempts: how often to look for workers by DNS, 5 s apart, when nothing else is known.

    Raises:
        SetupError: the environment states a cluster that cannot be right.
        DiscoveryError: the workers did not appear in DNS.
    """
    host = host or Host()
    found = sources.find(host, attempts=attempts)
    _check_own_name(found.task, host=host)
    made = context.of(found.task, source=found.source, environ=host.environ)
    host.say(_summary(made, reason=found.reason))
    changed = _put_tf_config(made, host=host, replaces=found.replaces)
    if changed and (text := late.complaint(late.stage(host.modules))):
        host.warn(text)
    return made


def _check_own_name(task: Task, *, host: Host) -> None:
    """Refuse an index that belongs to another host of the same cluster.

    TensorFlow never compares: with one index for all pods, each waits for the others for an hour.
    """
    own = task.cluster.address(task.role, task.index)
    if _first(own) == host.name:
        return
    for role in contract.ROLES:
        for index, address in enumerate(pattern.expand(task.cluster.patterns(role))):
            if _first(address) == host.name:
                raise SetupError(
                    f"this pod is said to be {task.role} {task.index}, which is {own}, but its "
                    f"host name is {host.name}, which is {role} {index}. Is TF_CONFIG, "
                    f"{contract.TASK_TYPE_ENV} or {contract.TASK_INDEX_ENV} set in the template, "
                    "where it is the same for all pods? Take it out"
                )


def _first(address: str) -> str:
    return address.partition(":")[0].partition(".")[0]


def _summary(made: TaskContext, *, reason: str) -> str:
    if made.source == "single":
        return f"one task alone: {reason}"
    counts = [(made.cluster.size(role), role) for role in contract.ROLES]
    sizes = ", ".join(
        f"{count:,} {role}{'s' if role == 'worker' and count > 1 else ''}"
        for count, role in counts
        if count
    )
    again = f", attempt {made.attempt}" if made.attempt else ""
    return f"this is {made.role} {made.index} of {sizes}{again} ({reason})"


def _put_tf_config(made: TaskContext, *, host: Host, replaces: bool) -> bool:
    """Set TF_CONFIG where that is safe; tell whether TensorFlow will now see something else."""
    before = host.environ.get(contract.TF_CONFIG_ENV)
    if made.source == "single":
        return False
    if before is not None and fits(before):
        if replaces:
            host.environ[contract.TF_CONFIG_ENV] = encoding.tf_config(made.task)
        return replaces
    host.environ.pop(contract.TF_CONFIG_ENV, None)
    # The estimate costs nothing and is never too small; ten thousand addresses are not even made.
    roomy = encoding.tf_config_length(made.cluster) < _MOST_BYTES - 64
    if roomy and fits(text := encoding.tf_config(made.task)):
        host.environ[contract.TF_CONFIG_ENV] = text
    else:
        host.say(
            f"TF_CONFIG of {made.cluster.total:,} tasks would be over 128 KiB, and then no child "
            "process could start: it stays unset. Create the strategy with tfadmit_trainer's "
            "helper or its cluster resolver, which need no TF_CONFIG"
        )
    return True


def fits(text: str) -> bool:
    """Whether a TF_CONFIG can be handed to a child process."""
    return len(f"{contract.TF_CONFIG_ENV}=") + len(os.fsencode(text)) + 1 <= _MOST_BYTES
