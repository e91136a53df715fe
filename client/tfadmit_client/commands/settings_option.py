"""The option `--settings` of the commands that judge: the webhook's settings, or the defaults."""

import argparse
from pathlib import Path

from tfadmit_client import fault
from tfadmit_webhook import policy
from tfadmit_webhook.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--settings", metavar="FILE", help="the webhook's settings (default: its defaults)"
    )


def load(path: str | None) -> Settings:
    """Read the settings file, as the server does.

    Raises:
        ClientError: with every fault of the file, one a line.
    """
    if path is None:
        return Settings()
    from tfadmit_webhook import settings_file  # noqa: PLC0415 - loads pydantic

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise fault.ClientError(f"{path}: the settings cannot be read: {reason}") from error
    found = settings_file.load(text, rules=policy.ids())
    if isinstance(found, Settings):
        return found
    raise fault.ClientError("\n".join(f"{path}: {item}" for item in found))
