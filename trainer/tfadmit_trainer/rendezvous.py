"""All tasks of a training meet, and compare what they know of it, before TensorFlow starts.

TensorFlow's start blocks in C++ with Python's interpreter locked: no thread of ours could say who
is missing, or end the wait. So tasks meet here first, over the port that TensorFlow binds later:
the chief (worker 0 where there is none) listens, the others connect and say who they are. When all
are there and agree, the chief closes its port and lets all go on together.
"""

from typing import Final

from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.meeting_guest import Guest
from tfadmit_trainer.meeting_host import Host

_LINE_SECONDS: Final = 10.0


def meet(context: TaskContext, *, deadline: float, every: float = _LINE_SECONDS) -> None:
    """Wait until all tasks are there and agree.

    Raises:
        MeetingError: some did not come in time.
        DisagreementError: some see another cluster, or belong to another attempt.
    """
    side = Host if context.is_chief else Guest
    side(context, deadline=deadline, every=every).run()
