"""OCI archives: read back as an engine does, by digest."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from harness.node import oci


def test_an_archive_leads_from_its_name_to_every_byte(tmp_path: Path):
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        entry = tarfile.TarInfo("hello")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"world"))
    settings = oci.Settings(
        entrypoint=("run", "--"), environment={"A": "1"}, user="65532:65532", ports=("8080/tcp",)
    )
    target = tmp_path / "image.tar"
    oci.write(target, name="example.com/a:1", layers=[layer], settings=settings)

    with tarfile.open(target) as archive:
        files = {member.name: _bytes(archive, member) for member in archive.getmembers()}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (named,) = json.loads(files["index.json"])["manifests"]
    assert named["annotations"] == {"io.containerd.image.name": "example.com/a:1"}
    manifest = json.loads(_blob(files, named))
    configuration = json.loads(_blob(files, manifest["config"]))
    assert configuration["config"]["Entrypoint"] == ["run", "--"]
    assert configuration["config"]["Env"] == ["A=1"]
    assert configuration["config"]["User"] == "65532:65532"
    assert configuration["config"]["ExposedPorts"] == {"8080/tcp": {}}
    assert _blob(files, manifest["layers"][0]) == layer.read_bytes()
    assert configuration["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]


def _blob(files: dict[str, bytes], descriptor: dict[str, object]) -> bytes:
    digest = str(descriptor["digest"])
    content = files["blobs/" + digest.replace(":", "/")]
    assert digest == "sha256:" + hashlib.sha256(content).hexdigest()
    assert descriptor["size"] == len(content)
    return content


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(member)
    assert content
    return content.read()
