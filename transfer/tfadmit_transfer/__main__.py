"""`python -m tfadmit_transfer`; everything is in `cli`.

SIGTERM waits while this starts: the sidecar of a program that ends at once must still save, and an
import takes a second where a quarter of a CPU is all there is. `cli` lets it through.
"""

import signal
import sys

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})

from tfadmit_transfer import cli  # noqa: E402 - after the line above

if __name__ == "__main__":
    sys.exit(cli.main())
