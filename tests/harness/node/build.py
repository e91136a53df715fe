"""Dockerfiles carried out without an engine: each instruction becomes a layer, kept by content.

So what the tests run is what the shipped recipes say. An overlay of the layers so far is mounted,
in a namespace of its own, and the command runs in it by chroot.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import cache
from harness.node import dockerfile, oci
from harness.node.dockerfile import Instruction, Stage

# How a user's machine reaches an index of packages; all else of the environment stays outside.
_PASSED = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT"),
)
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
# Never in an image, wherever they lie in the context; .dockerignore says the same.
_IGNORED = shutil.ignore_patterns("__pycache__")


@dataclass(frozen=True, kw_only=True)
class Image:
    """Layers, the lowest first, and how a process is started in them."""

    key: str
    layers: tuple[Path, ...]
    settings: oci.Settings


class UnknownBaseError(ValueError):
    """An image is built on another one that nobody makes here."""


class StepError(RuntimeError):
    """A command of a Dockerfile failed; the message shows what it printed."""


def build(
    text: str,
    *,
    context: Path,
    bases: Mapping[str, Image],
    arguments: Mapping[str, str] | None = None,
    say: cache.Say = cache.to_stderr,
) -> Image:
    """The image of the last stage; only what is not kept from an earlier time is carried out."""
    known = dict(bases)
    stages = dockerfile.parse(text, arguments=arguments)
    for stage in stages:
        if stage.base not in known:
            raise UnknownBaseError(
                f"FROM {stage.base}: only {', '.join(sorted(known))} can stand there"
            )
        known[stage.name] = _stage(stage, context=context, known=known, say=say)
    return known[stages[-1].name]


def kept() -> Path:
    """Where the layers are, each with an entry of its own."""
    return cache.directory() / "layers"


def _stage(stage: Stage, *, context: Path, known: Mapping[str, Image], say: cache.Say) -> Image:
    image = known[stage.base]
    for instruction in stage.instructions:
        if instruction.is_step:
            image = _step(instruction, image=image, context=context, known=known, say=say)
        else:
            image = replace(image, settings=_set(instruction, image.settings))
    return image


def _set(instruction: Instruction, settings: oci.Settings) -> oci.Settings:
    text = instruction.text
    if instruction.name == "ENV":
        pairs = (word.split("=", 1) for word in dockerfile.words(text))
        before = settings.environment
        given = {name: dockerfile.expand(value, before) for name, value in pairs}
        return replace(settings, environment={**before, **given})
    if instruction.name == "EXPOSE":
        ports = tuple(f"{port}/tcp" for port in text.split())
        return replace(settings, ports=(*settings.ports, *ports))
    if instruction.name == "ENTRYPOINT":
        # Docker forgets the command of the base then.
        return replace(settings, entrypoint=tuple(dockerfile.words(text)), command=())
    if instruction.name == "CMD":
        return replace(settings, command=tuple(dockerfile.words(text)))
    if instruction.name == "USER":
        return replace(settings, user=text)
    return replace(settings, directory=text)


def _step(
    instruction: Instruction,
    *,
    image: Image,
    context: Path,
    known: Mapping[str, Image],
    say: cache.Say,
) -> Image:
    source = known.get(_source(instruction))
    taken = [] if source or instruction.name == "RUN" else _copied(instruction, context=context)
    key = cache.key(
        files=[file for file in taken if file.is_file()],
        also=[
            *(image.key, instruction.name, instruction.text, repr(instruction.options)),
            *(source.key if source else "", image.settings.directory),
            *(str(file.relative_to(context)) for file in taken),
            repr(sorted(image.settings.environment.items())),
        ],
    )
    layer = kept() / key
    if not (layer / "files").exists():
        with cache.lock(layer, say=say):
            if not (layer / "files").exists():
                say(f"{instruction.name} {instruction.text[:80]}")
                with cache.created(layer / "files") as partial:
                    partial.mkdir()
                    _carry_out(
                        instruction, image=image, source=source, context=context, upper=partial
                    )
    return replace(image, key=key, layers=(*image.layers, cache.used(layer) / "files"))


def _source(instruction: Instruction) -> str:
    """The stage from which files come, or nothing."""
    if instruction.name == "COPY":
        return instruction.options.get("from", "")
    return _mount(instruction).get("from", "")


def _mount(instruction: Instruction) -> Mapping[str, str]:
    parts = instruction.options.get("mount", "").split(",")
    return dict(part.split("=", 1) for part in parts if part)


def _copied(instruction: Instruction, *, context: Path) -> list[Path]:
    """Every file that is copied out of the context, in a fixed order."""
    *sources, _ = dockerfile.words(instruction.text)
    found = []
    for source in sources:
        path = context / source
        if not path.exists():
            raise StepError(f"COPY {instruction.text}: there is no {path}")
        found += sorted(path.rglob("*")) if path.is_dir() else [path]
    return [path for path in found if "__pycache__" not in path.parts]


def _carry_out(
    instruction: Instruction, *, image: Image, source: Image | None, context: Path, upper: Path
) -> None:
    scratch = upper.with_name(".scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    for name in ("work", "root", "source", "context"):
        (scratch / name).mkdir(parents=True)
    root = scratch / "root"
    lines = ["set -eu", _overlay(image.layers, root, upper=upper, work=scratch / "work")]
    if source:
        lines.append(_overlay(source.layers, scratch / "source"))
    if instruction.name == "COPY":
        sources = scratch / "source"
        if not source:
            sources = scratch / "context"
            _take_context(instruction, context=context, target=sources)
        lines += _copy(instruction, sources=sources, root=root, directory=image.settings.directory)
    else:
        lines += _run(instruction, image=image, root=root, sources=scratch / "source")
    script = "\n".join(lines)
    done = subprocess.run(
        ["nice", "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    shutil.rmtree(scratch)
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
        raise StepError(f"{instruction.name} {instruction.text}\n{end}")


def _overlay(
    layers: Sequence[Path], target: Path, *, upper: Path | None = None, work: Path | None = None
) -> str:
    lower = [*reversed(layers)]
    if not upper and len(lower) == 1:
        return f"mount --bind {_quoted(lower[0])} {_quoted(target)}"
    options = "lowerdir=" + ":".join(map(str, lower))
    if upper:
        options += f",upperdir={upper},workdir={work}"
    return f"mount -t overlay -o {shlex.quote(options)} overlay {_quoted(target)}"


def _take_context(instruction: Instruction, *, context: Path, target: Path) -> None:
    *sources, _ = dockerfile.words(instruction.text)
    for source in sources:
        place = target / source
        place.parent.mkdir(parents=True, exist_ok=True)
        if (context / source).is_dir():
            shutil.copytree(context / source, place, ignore=_IGNORED)
        else:
            shutil.copy2(context / source, place)


def _copy(instruction: Instruction, *, sources: Path, root: Path, directory: str) -> Iterator[str]:
    *names, last = dockerfile.words(instruction.text)
    target = Path(directory or "/") / last
    inside = root / target.relative_to("/")
    into_folder = last.endswith("/") or last == "." or len(names) > 1
    yield f"mkdir -p {_quoted(inside if into_folder else inside.parent)}"
    for name in names:
        source = sources / name.lstrip("/")
        # Docker copies what is in a folder, and a file under the target's name.
        yield (
            f"if [ -d {_quoted(source)} ]; then mkdir -p {_quoted(inside)};"
            f" cp -a {_quoted(source)}/. {_quoted(inside)};"
            f" else cp -a {_quoted(source)} {_quoted(inside)}; fi"
        )
    if "from" not in instruction.options:
        yield f"chown -R 0:0 {_quoted(inside)}"


def _run(instruction: Instruction, *, image: Image, root: Path, sources: Path) -> Iterator[str]:
    for name in ("proc", "dev"):
        yield f"mount --rbind /{name} {_quoted(root / name)}"
    for name in ("etc/resolv.conf", _AUTHORITIES[1:]):
        yield f"mount --bind $(readlink -f /{name}) {_quoted(root / name)}"
    mounted = _mount(instruction)
    if mounted:
        target = root / mounted["target"].lstrip("/")
        yield f"mkdir {_quoted(target)}"
        yield f"mount --bind {_quoted(sources / mounted['source'].lstrip('/'))} {_quoted(target)}"
    directory = image.settings.directory or "/"
    if directory != "/":
        yield f"mkdir -p {_quoted(root / directory[1:])}"
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    environ = {**image.settings.environment, **passed, "PIP_CERT": _AUTHORITIES, "HOME": "/root"}
    settings = [f"{name}={value}" for name, value in environ.items()]
    command = f"cd {shlex.quote(directory)} && {instruction.text}"
    yield shlex.join(["chroot", str(root), "env", "-i", *settings, "sh", "-c", command])
    if mounted:
        yield f"umount {_quoted(target)} && rmdir {_quoted(target)}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def files(layers: Iterable[Path]) -> dict[str, Path]:
    """Every path of the image, from the root, and where its topmost version lies."""
    found: dict[str, Path] = {}
    for layer in layers:
        for path in layer.rglob("*"):
            found[str(path.relative_to(layer))] = path
    return found
