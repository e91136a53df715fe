"""A real S3 server of the tests' own: built once from ``go/object-store``, run on a folder."""

from __future__ import annotations

import functools
import platform
import secrets
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import binaries, cache, loopback, signature_v4, tools
from harness.process import Process

MODULE = Path(__file__).parent / "go" / "object-store"
PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """The running server."""

    host: str
    port: int
    folder: Path
    """Buckets are folders in it, objects are files in those."""
    access_key: str
    secret_key: str
    process: Process

    def environ(self, *, port: int | None = None, **more: str) -> dict[str, str]:
        """What a client has in its environment, to ask it directly or by another port."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ENDPOINT_URL": f"http://{self.host}:{port or self.port}",
            "AWS_REGION": "us-east-1",
            **more,
        }

    def bucket(self) -> str:
        """Make an empty bucket with a new name."""
        name = f"training-{secrets.token_hex(4)}"
        (self.folder / name).mkdir()
        return name

    def mark_folder(self, bucket: str, key: str) -> None:
        """Write the empty object by which consoles mark a folder; the key ends at a slash.

        By hand, since obstore takes the slash away.
        """
        host, path = f"{self.host}:{self.port}", signature_v4.path(f"/{bucket}/{key}")
        signed = signature_v4.headers(
            "PUT", path, host=host, access_key=self.access_key, secret_key=self.secret_key
        )
        request = urllib.request.Request(f"http://{host}{path}", data=b"", headers=signed)
        request.method = "PUT"
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200

    def objects(self, bucket: str) -> Mapping[str, bytes]:
        """Every object of a bucket, by its key, as it lies on the disk."""
        root = self.folder / bucket
        files = (path for path in root.rglob("*") if path.is_file())
        found = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
        return {key: content for key, content in found.items() if not key.startswith(".sgwtmp")}


def program(*, say: cache.Say = cache.to_stderr) -> Path:
    """The server's program, built now when the cache lacks it."""
    return cache.made(entry(), "versitygw", make=functools.partial(_build, say=say), say=say)


def entry() -> Path:
    """The cache entry for exactly this module, these flags and this kind of machine."""
    files = [MODULE / "go.mod", MODULE / "go.sum"]
    name = cache.key(files=files, also=[*FLAGS, PACKAGE, platform.machine()])
    return cache.directory() / f"object-store-{name}"


@contextmanager
def running(
    *, directory: Path, host: str = "127.0.0.1", say: cache.Say = cache.to_stderr
) -> Iterator[ObjectStore]:
    """A server on an address of this machine, ended afterwards."""
    port, access_key, secret_key = loopback.free_port(), "AKTESTTEST", secrets.token_hex(16)
    for name in ("buckets", "meta", "accounts"):
        (directory / name).mkdir(parents=True)
    command: list[str | Path] = [program(say=say), "--port", f"{host}:{port}", "--quiet"]
    command += ["--iam-dir", directory / "accounts"]
    command += ["posix", "--sidecar", directory / "meta", directory / "buckets"]
    process = Process(
        name="versitygw",
        command=command,
        log=directory / "versitygw.log",
        environ={"ROOT_ACCESS_KEY": access_key, "ROOT_SECRET_KEY": secret_key},
    )
    process.start(ready=lambda: loopback.listening(port, host=host))
    try:
        yield ObjectStore(
            host=host,
            port=port,
            folder=directory / "buckets",
            access_key=access_key,
            secret_key=secret_key,
            process=process,
        )
    finally:
        process.stop()


def _build(target: Path, *, say: cache.Say) -> None:
    go = tools.go(module=MODULE, say=say)
    say(f"building {PACKAGE}: once, about a minute on 2 cores")
    with cache.created(target) as partial:
        binaries.run(go, "build", *FLAGS, "-o", partial, PACKAGE, module=MODULE)
