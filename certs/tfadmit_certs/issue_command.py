"""`tfadmit certs issue`: certificates in a directory, without a cluster.

Here: argparse and printing. What is done is `files`, what the summary says is `report`. I/O:
standard output.
"""

import argparse
from datetime import datetime, timedelta
from pathlib import Path

from tfadmit_certs import options, san

# A century: far above any sensible lifetime, far below the year 9999, where dates end.
_MAX_DAYS = 36_500

_EPILOG = """\
examples:
  %(prog)s --dns tfadmit-webhook.tfadmit-system.svc --out certs
  %(prog)s --dns localhost --ip 127.0.0.1 ::1 --out certs --days 30

The directory gets ca.crt, ca.key, tls.crt and tls.key, as in a Kubernetes Secret.
Run it again to renew: the CA in the directory signs the new certificate.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    command = commands.add_parser(
        "issue",
        help="issue a CA and a server certificate into a directory",
        description="Issue a server certificate, and the CA that signs it, into a directory.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(command)


def _add_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--dns",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="DNS names of the server; repeatable",
    )
    add(
        "--ip",
        metavar="ADDR",
        nargs="+",
        action="extend",
        default=[],
        help="IP addresses of the server; repeatable",
    )
    add("--out", metavar="DIR", type=Path, required=True, help="directory, made when missing")
    add(
        "--days",
        metavar="N",
        type=_days,
        default=timedelta(days=365),
        help="days that the certificate is valid (default: 365)",
    )
    add(
        "--ca-days",
        metavar="N",
        type=_days,
        default=timedelta(days=3650),
        help="days that a new CA is valid (default: 3650)",
    )
    add("--force", action="store_true", help="make a new CA even where one is, overwriting its key")
    options.add_output(command)


def _days(text: str) -> timedelta:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days from 1 to {_MAX_DAYS}")
    return timedelta(days=int(text))


def execute(arguments: argparse.Namespace, *, now: datetime) -> int:
    """Run the command; the result is the exit code."""
    if not arguments.dns and not arguments.ip:
        raise san.NamesError("a certificate needs a name.\n  add --dns NAME, --ip ADDR or both")
    names = san.check(dns=arguments.dns, ips=arguments.ip)
    # Here and not above, because they load cryptography and `--help` must not wait for it.
    from tfadmit_certs import files, issue, report  # noqa: PLC0415

    delivery = files.fulfil(
        files.Order(names=names, lifetime=arguments.days, ca_lifetime=arguments.ca_days),
        directory=arguments.out,
        now=now,
        entropy=issue.system_entropy(),
        force=arguments.force,
    )
    render = report.as_json if arguments.output == "json" else report.as_text
    print(render(delivery))
    return 0
