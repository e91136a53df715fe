"""`python -m tfadmit_trainer.launcher`, for images that have the library installed."""

import sys

from tfadmit_trainer.launcher import command

if __name__ == "__main__":
    sys.exit(command.main())
