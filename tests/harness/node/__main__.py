"""``python -m harness.node [COUNT]`` in tests/: a cluster to look at, until it is interrupted."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from harness import cache
from harness.node import images, nodes


def main() -> None:
    """Start the nodes, print how they are reached, and wait."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    # By an exception, so that everything is undone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as directory:
        try:
            with nodes.own(
                directory=Path(directory), recipes=[images.WEBHOOK], count=count
            ) as started:
                print(f"export KUBECONFIG={started.cluster.kubeconfig}", flush=True)
                cache.to_stderr(f"{count} nodes are ready; end them with Ctrl-C")
                signal.pause()
        except KeyboardInterrupt:
            cache.to_stderr("ended")


if __name__ == "__main__":
    main()
