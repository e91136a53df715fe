"""A directory of certificates with the names that Kubernetes Secrets use.

Here: reading, locking and atomic writing, and what happens to files that are already there. Not
here: X.509 (`issue`, `bundle`), printing (`cli`). I/O: the file system, nothing else.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from tfadmit_certs import bundle, fault, issue, san

CA_CERTIFICATE, CA_KEY = "ca.crt", "ca.key"
CERTIFICATE, KEY = "tls.crt", "tls.key"  # the names of a Secret of type kubernetes.io/tls

NEW_CA_HINT = "to make a new CA instead, add --force; every caBundle must then be set anew"


class FilesError(fault.CertsError):
    """A directory or a file in it that cannot be used as it is."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a directory should hold."""

    names: san.Names
    lifetime: timedelta = issue.LEAF_LIFETIME
    ca_lifetime: timedelta = issue.CA_LIFETIME


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What was done and what the directory holds now. No keys: those are in the files only."""

    directory: Path
    ca: Literal["created", "reused", "replaced"]
    authority: bundle.Facts
    certificate: bundle.Facts
    ca_pem: bytes
    written: tuple[Path, ...]


def fulfil(
    order: Order, *, directory: Path, now: datetime, entropy: issue.Entropy, force: bool = False
) -> Delivery:
    """Issue a leaf into `directory`, by the CA that is there or, if none is, by a new one.

    `force` makes a new CA in any case and is the only way by which a CA key is ever overwritten.
    """
    _make_directory(directory)
    with _locked(directory):
        found = None if force else read_ca(directory, now=now)
        replaced = force and _any_of(directory, CA_CERTIFICATE, CA_KEY) is not None
        if not found and not force:
            _refuse_foreign_leaf(directory)
        ca = found or issue.issue_ca(now=now, entropy=entropy, lifetime=order.ca_lifetime)
        leaf = issue.issue_leaf(
            ca=ca, names=order.names, now=now, entropy=entropy, lifetime=order.lifetime
        )
        contents = {} if found else {CA_KEY: ca.key, CA_CERTIFICATE: ca.certificate}
        contents |= {KEY: leaf.key, CERTIFICATE: leaf.certificate}
        written = write(contents, directory=directory)
    return Delivery(
        directory=directory,
        ca="reused" if found else "replaced" if replaced else "created",
        authority=bundle.describe(bundle.signer(ca)),
        certificate=bundle.describe(bundle.parse(leaf.certificate)[0]),
        ca_pem=ca.certificate,
        written=written,
    )


def read_ca(directory: Path, *, now: datetime) -> bundle.Pair | None:
    """The CA in `directory`, fit to sign at `now`; None when there is no trace of one."""
    certificate, key = _read(directory / CA_CERTIFICATE), _read(directory / CA_KEY)
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        there, missing = (CA_KEY, CA_CERTIFICATE) if key is not None else (CA_CERTIFICATE, CA_KEY)
        raise FilesError(
            f"{directory / there} is there, but {missing} is missing. One is useless without the"
            f" other.\n  put {missing} back; {NEW_CA_HINT}"
        )
    ca = bundle.Pair(certificate=certificate, key=key)
    if problems := _ca_problems(ca, now=now):
        raise FilesError(f"{directory}: {'; '.join(problems)}.\n  {NEW_CA_HINT}")
    return ca


def write(contents: Mapping[str, bytes], *, directory: Path) -> tuple[Path, ...]:
    """Write the files so that a reader sees each either old or new, whole, and with its mode.

    All are complete on disk before the first takes its name, so a full disk changes nothing.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            target = directory / name
            if target.is_dir():
                raise FilesError(
                    f"{target} is a directory.\n  move it away or choose another --out"
                )
            staged.append((_stage(content, target=target), target))
        for temporary, target in staged:
            temporary.replace(target)
        _sync(directory)
    except OSError as error:
        raise _cannot("write to", directory, error) from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
    return tuple(target for _, target in staged)


def _stage(content: bytes, *, target: Path) -> Path:
    """Write `content` beside `target` under a name of its own and return that."""
    # mkstemp opens with 0600 and O_EXCL: a key is never readable by others, not for a moment.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), _mode(target.name))  # fchmod: whatever the umask says
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _mode(name: str) -> int:
    return 0o600 if name.endswith(".key") else 0o644


def _sync(directory: Path) -> None:
    """Make the new names survive a power cut, not only the contents."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """One writer at a time: two at once would leave the key of one beside the CA of the other."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _cannot("open", directory, error) from error
    try:
        # Some network file systems lock no directories; there it goes on without.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot("create the directory", directory, error) from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot("read", path, error) from error


def _ca_problems(ca: bundle.Pair, *, now: datetime) -> tuple[str, ...]:
    try:
        signer = bundle.signer(ca, certificate=CA_CERTIFICATE, key=CA_KEY)
        return bundle.authority_problems(signer, now=now)
    except bundle.BundleError as error:
        return (str(error),)


def _refuse_foreign_leaf(directory: Path) -> None:
    """Without a CA of ours, a pair that is there was made by somebody else and is not ours."""
    if path := _any_of(directory, CERTIFICATE, KEY):
        raise FilesError(
            f"{path} is there without {CA_CERTIFICATE} and {CA_KEY}. It came from elsewhere and"
            " would be lost.\n  choose another --out, or overwrite it by --force"
        )


def _any_of(directory: Path, *names: str) -> Path | None:
    """The first of these that exists."""
    try:
        return next((directory / name for name in names if (directory / name).exists()), None)
    except OSError as error:
        raise _cannot("look into", directory, error) from error


def _cannot(verb: str, path: Path, error: OSError) -> FilesError:
    reason = (error.strerror or str(error)).lower()
    return FilesError(f"cannot {verb} {path}: {reason}.\n  choose another directory with --out")
