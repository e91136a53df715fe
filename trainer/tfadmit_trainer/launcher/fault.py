"""What stands in the way of starting a program, as one kind of exception."""

from tfadmit_trainer.fault import StartError


class LaunchError(StartError):
    """Code or inputs are not as promised; the same would happen again, so the code is 2."""
