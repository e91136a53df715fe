"""The images of the tests: those of deploy/images, built as their Dockerfiles say."""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

from harness import cache, tools
from harness.node import build, oci, rootfs

WEBHOOK = "tfadmit/webhook:0.1.0"
TRAINING = "tfadmit/training:0.1.0"

_RECIPES = tools.ROOT / "deploy" / "images"
_TENSORFLOW = Path(__file__).with_name("tensorflow.Dockerfile")
_TENSORFLOW_NAME = "tests/tensorflow"
# containerd reads "tfadmit/webhook" as a name of this registry, as docker does.
_REGISTRY = "docker.io"


def webhook(*, say: cache.Say = cache.to_stderr) -> build.Image:
    """The admission server."""
    return _built(_RECIPES / "webhook" / "Dockerfile", bases=_python(say=say), say=say)


def training(*, say: cache.Say = cache.to_stderr) -> build.Image:
    """The image to train with, on TensorFlow for CPUs instead of NVIDIA's image."""
    python = _python(say=say)
    base = _built(_TENSORFLOW, bases=python, say=say)
    return build.build(
        (_RECIPES / "training" / "Dockerfile").read_text(),
        context=tools.ROOT,
        bases={**python, _TENSORFLOW_NAME: base},
        arguments={"BASE": _TENSORFLOW_NAME},
        say=say,
    )


def archive(
    name: str, make: Callable[..., build.Image], *, say: cache.Say = cache.to_stderr
) -> Path:
    """An OCI archive with an image under its name, written now when its content is new."""
    image = make(say=say)
    short = name.partition(":")[0].replace("/", "-")
    key = cache.key(files=[], also=[image.key, name, repr(image.settings)])
    entry = cache.directory() / f"image-{short}-{key}"
    target = entry / "image.tar"
    if not target.exists():
        with cache.lock(entry, say=say):
            if not target.exists():
                say(f"writing {name} as an OCI archive")
                layers = [_layer(files, say=say) for files in image.layers]
                full = f"{_REGISTRY}/{name}"
                with cache.created(target) as partial:
                    oci.write(partial, name=full, layers=layers, settings=image.settings)
    return target


def _built(recipe: Path, *, bases: dict[str, build.Image], say: cache.Say) -> build.Image:
    return build.build(recipe.read_text(), context=tools.ROOT, bases=bases, say=say)


def _python(*, say: cache.Say) -> dict[str, build.Image]:
    root = rootfs.ready(say=say)
    settings = oci.Settings(environment=rootfs.ENVIRONMENT, command=("python3",))
    image = build.Image(key=rootfs.entry().name, layers=(root,), settings=settings)
    return {rootfs.NAME: image}


def _layer(files: Path, *, say: cache.Say) -> Path:
    """The tar file of a layer, beside its files."""
    target = files.with_name("layer.tar")
    if not target.exists():
        with (
            cache.lock(files.parent, say=say),
            cache.created(target) as partial,
            tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar,
        ):
            _add(tar, files)
    return target


def _add(tar: tarfile.TarFile, files: Path) -> None:
    for path in sorted(files.rglob("*")):
        name = str(path.relative_to(files))
        status = path.lstat()
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            # An overlay's mark for a file that is gone, as the image format has it.
            tar.addfile(tarfile.TarInfo(str(Path(name).with_name(f".wh.{Path(name).name}"))))
        else:
            tar.add(path, arcname=name, recursive=False)
