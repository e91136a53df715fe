"""`python -m tfadmit_trainer`: the same as `tfadmit-run`, where its script is not in PATH."""

import sys

from tfadmit_trainer import run

if __name__ == "__main__":
    sys.exit(run.main())
