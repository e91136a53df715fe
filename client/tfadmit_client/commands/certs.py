"""The command `tfadmit certs`: the certificates' own command line, with what it needs from outside.

`tfadmit certs run` reads the settings file of the webhook, and neither component knows the other:
they are put together here. Everything else is in `tfadmit_certs`.
"""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tfadmit_certs import cli, lifetimes, run_command


def main(argv: Sequence[str] | None = None, *, prog: str = "tfadmit certs") -> int:
    """Run the command."""
    return cli.main(argv, prog=prog, host=run_command.Host(load=_load, log=_log))


def _load(path: Path | None) -> run_command.Settings:
    """Read the section `certificates`.

    Raises:
        ClientError: with every fault of the file, one a line.
    """
    from tfadmit_client.commands import settings_option  # noqa: PLC0415 - loads the rules
    from tfadmit_webhook import settings_duration  # noqa: PLC0415 - not needed otherwise

    def parse(text: str) -> timedelta:
        return timedelta(seconds=settings_duration.parse(text))

    settings = settings_option.load(str(path) if path else None)
    stated = settings.certificates
    return run_command.Settings(
        lifetimes=lifetimes.Lifetimes(
            ca=parse(stated.ca_lifetime),
            ca_renew_before=parse(stated.ca_renew_before),
            leaf=parse(stated.leaf_lifetime),
            leaf_renew_before=parse(stated.leaf_renew_before),
            clock_skew=parse(stated.clock_skew),
            settle=parse(stated.settle),
        ),
        cluster_domain=settings.cluster_domain,
    )


def _log() -> None:
    from tfadmit_webhook import json_log  # noqa: PLC0415 - not needed otherwise

    json_log.install()
