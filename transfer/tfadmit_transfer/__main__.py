"""`python -m tfadmit_transfer`; everything is in `cli`."""

import sys

from tfadmit_transfer import cli

if __name__ == "__main__":
    sys.exit(cli.main())
