"""`python -m tfadmit_certs`: the command line without the `tfadmit` command. I/O: see `cli`."""

import sys

from tfadmit_certs import cli

if __name__ == "__main__":
    sys.exit(cli.main(prog="python -m tfadmit_certs"))
