"""`python -m tfadmit_client`: the `tfadmit` command where the script is not on the PATH."""

import sys

from tfadmit_client import cli

if __name__ == "__main__":
    sys.exit(cli.main())
