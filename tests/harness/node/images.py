"""The images of the tests: those of deploy/images, built as their Dockerfiles say."""

from __future__ import annotations

import stat
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import cache, tools
from harness.node import build, oci, rootfs

_RECIPES = tools.ROOT / "deploy" / "images"
_TENSORFLOW = Path(__file__).with_name("tensorflow.Dockerfile")
# containerd reads "tfadmit/webhook" as a name of this registry, as docker does.
_REGISTRY = "docker.io"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A name in manifests, and how its image is built."""

    name: str
    build: Callable[[cache.Say], build.Image]


def webhook(say: cache.Say) -> build.Image:
    """The admission server."""
    return _built(_RECIPES / "webhook" / "Dockerfile", bases=bases(say), say=say)


def transfer(say: cache.Say) -> build.Image:
    """The init container and the sidecar of pods with data and results."""
    return _built(_RECIPES / "transfer" / "Dockerfile", bases=bases(say), say=say)


def tensorflow(say: cache.Say) -> build.Image:
    """TensorFlow for CPUs, without tfadmit, in place of NVIDIA's image."""
    return _built(_TENSORFLOW, bases=bases(say), say=say)


def training(say: cache.Say) -> build.Image:
    """The image to train with, on TensorFlow for CPUs instead of NVIDIA's image."""
    return build.build(
        (_RECIPES / "training" / "Dockerfile").read_text(),
        context=tools.ROOT,
        bases={**bases(say), TENSORFLOW.name: tensorflow(say)},
        say=say,
    )


# Under NVIDIA's own name, as the shipped runtimes and the Dockerfile say it.
TENSORFLOW = Recipe(name="nvcr.io/nvidia/tensorflow:24.03-tf2-py3", build=tensorflow)
TRANSFER = Recipe(name="tfadmit/transfer:0.1.0", build=transfer)
WEBHOOK = Recipe(name="tfadmit/webhook:0.1.0", build=webhook)
TRAINING = Recipe(name="tfadmit/training:0.1.0", build=training)


def write_archive(target: Path, *, name: str, image: build.Image) -> None:
    """Write an OCI archive with an image under its name."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        layers = [
            _layer(files, target=Path(scratch, f"{number}.tar"))
            for number, files in enumerate(image.layers)
        ]
        oci.write(target, name=full_name(name), layers=layers, settings=image.settings)


def full_name(name: str) -> str:
    """An image's name with its registry, as containerd reads it."""
    registry, _, rest = name.partition("/")
    return name if rest and "." in registry else f"{_REGISTRY}/{name}"


def _built(recipe: Path, *, bases: Mapping[str, build.Image], say: cache.Say) -> build.Image:
    return build.build(recipe.read_text(), context=tools.ROOT, bases=bases, say=say)


def bases(say: cache.Say) -> dict[str, build.Image]:
    """What stands for the images of registries, by their names there."""
    root = rootfs.ready(say=say)
    settings = oci.Settings(environment=rootfs.ENVIRONMENT, command=("python3",))
    image = build.Image(key=rootfs.entry().name, layers=(root,), settings=settings)
    return {rootfs.NAME: image}


def _layer(files: Path, *, target: Path) -> Path:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(files.rglob("*")):
            name = path.relative_to(files)
            status = path.lstat()
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                # An overlay's mark for a file that is gone, as the image format has it.
                tar.addfile(tarfile.TarInfo(str(name.with_name(f".wh.{name.name}"))))
            else:
                tar.add(path, arcname=str(name), recursive=False)
    return target
