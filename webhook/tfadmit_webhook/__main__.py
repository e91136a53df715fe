"""`python -m tfadmit_webhook`: the server without the `tfadmit` command."""

import sys

from tfadmit_webhook import cli

if __name__ == "__main__":
    sys.exit(cli.main(prog="python -m tfadmit_webhook"))
