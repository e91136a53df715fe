"""`tfadmit certs run` that kills itself (kill -9) right after its KILL_AFTER-th write.

For test_certs_controller.py: a crash at every point at which one can leave something half done.
"""

import os
import signal
import sys

from tfadmit_certs import secret
from tfadmit_client.commands import certs

_LEFT = [int(os.environ["KILL_AFTER"])]


def _then_die(method):
    def wrapped(*words, **options):
        method(*words, **options)
        _LEFT[0] -= 1
        if not _LEFT[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    return wrapped


secret.Store.write = _then_die(secret.Store.write)  # type: ignore[method-assign]
secret.Store.publish = _then_die(secret.Store.publish)  # type: ignore[method-assign]
secret.Store.disown = _then_die(secret.Store.disown)  # type: ignore[method-assign]
sys.exit(certs.main(["run", *sys.argv[1:]]))
