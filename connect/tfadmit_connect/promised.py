"""Credentials that a kubeconfig promises and does not give.

When the program that makes them (`exec:`) fails, the Kubernetes client logs that and goes on to ask
as nobody; the API server then says that nobody may list, which is not what went wrong.
"""

import contextlib
import logging
from collections.abc import Iterator

from tfadmit_connect import fault


class _Errors(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.lines.append(" ".join(record.getMessage().split()))


@contextlib.contextmanager
def or_fault(files: str) -> Iterator[None]:
    """Refuse to go on when what makes the credentials fails while a kubeconfig is loaded.

    Raises:
        ConnectError: with what was logged.
    """
    errors = _Errors()
    logging.getLogger().addHandler(errors)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(errors)
    if errors.lines:
        said = "; ".join(errors.lines)
        raise fault.ConnectError(f"{files}: it gives no credentials: {said}")
