"""containerd's store with the images of the tests in it, filled once and shared by all nodes.

Taking an image in writes every file of it. Layers are never written to afterwards, so each node
gets a store of its own in which they are only mounted.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness import cache
from harness.node import build, images, plan, programs
from harness.node.machine import Machine
from harness.node.runtime import PAUSE_IMAGE, ROOT, Runtime, pause_archive

_CONTENT = "io.containerd.content.v1.content"
_DATABASE = Path("io.containerd.metadata.v1.bolt", "meta.db")
_SNAPSHOTTER = "io.containerd.snapshotter.v1.overlayfs"


def kept() -> Path:
    """Where the stores are, one for each set of images."""
    return cache.directory() / "stores"


def ready(
    recipes: Sequence[images.Recipe],
    *,
    found: programs.Programs,
    place: Path,
    say: cache.Say = cache.to_stderr,
) -> Path:
    """A store with the images of these recipes and the pods' first process, filled when needed."""
    built = {recipe.name: recipe.build(say) for recipe in recipes}
    parts = [f"{name} {image.key} {image.settings}" for name, image in built.items()]
    key = cache.key(files=[found.pause], also=[PAUSE_IMAGE, str(found.containerd), *parts])
    entry = kept() / key
    target = entry / "root"
    if not target.exists():
        with cache.lock(entry, say=say):
            if not target.exists():
                say(f"taking images in: {', '.join(built)}")
                with cache.created(target) as partial:
                    _fill(partial, built=built, found=found, place=place)
    return cache.used(entry) / "root"


def give(store: Path, machine: Machine) -> None:
    """Put a store on a machine, before its containerd starts."""
    root = machine.directory / ROOT
    # The few files of the content are never written to: a second name is enough.
    shutil.copytree(store / _CONTENT, root / _CONTENT, copy_function=_second_name)
    (root / _DATABASE).parent.mkdir(parents=True)
    shutil.copy2(store / _DATABASE, root / _DATABASE)
    snapshots = root / _SNAPSHOTTER / "snapshots"
    snapshots.mkdir(parents=True)
    shutil.copy2(store / _SNAPSHOTTER / "metadata.db", root / _SNAPSHOTTER / "metadata.db")
    script = ["set -e"]
    for layer in sorted((store / _SNAPSHOTTER / "snapshots").iterdir()):
        (snapshots / layer.name).mkdir()
        script.append(f"mount --bind '{layer}' '{snapshots / layer.name}'")
    machine.run("sh", "-c", "\n".join(script))


def _fill(
    target: Path,
    *,
    built: dict[str, build.Image],
    found: programs.Programs,
    place: Path,
) -> None:
    machine = Machine(name="images", directory=place / "images", first=found.pause)
    machine.start()
    try:
        runtime = Runtime(node=plan.Node(number=0), machine=machine, found=found)
        process = runtime.start()
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            runtime.take(pause_archive(Path(scratch, "pause.tar"), program=found.pause))
            for name, image in built.items():
                archive = Path(scratch, "image.tar")
                images.write_archive(archive, name=name, image=image)
                runtime.take(archive)
        process.stop()
    finally:
        machine.stop()
    (machine.directory / ROOT).rename(target)


def _second_name(old: str, new: str) -> None:
    Path(new).hardlink_to(old)
