"""An earlier job of `tfadmit run` as options and code: `--from`. Pure, but for asking the cluster.

The code is the one that the job ran with, whatever has become of the folder since.
"""

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Mapping

from tfadmit_client import fault
from tfadmit_client.submit import asked, options
from tfadmit_client.submit.objects import Code, Stored
from tfadmit_client.submit.resource import CONFIG_MAP, TRAINJOB
from tfadmit_trainer import contract, workspace
from tfadmit_transfer import inputs
from tfadmit_webhook import raw, trainjob


def said(cluster: asked.Cluster, *, namespace: str, name: str) -> tuple[options.Options, Code]:
    """Give the options and the code of a job.

    Raises:
        ClientError: it does not exist, or was not made by `tfadmit run`.
    """
    found = asked.find(cluster, TRAINJOB, namespace=namespace, name=name)
    if found is None:
        raise fault.ClientError(
            f"--from {name}: there is no such TrainJob in the namespace {namespace}; `tfadmit ps "
            f"-n {namespace}{cluster.flags}` shows those that there are"
        )
    notes = raw.strings(raw.at(found, ("metadata", "annotations")))
    try:
        content = json.loads(notes[contract.OPTIONS_ANNOTATION])
    except (KeyError, ValueError) as error:
        raise fault.ClientError(
            f"--from {name}: `tfadmit run` has not made this TrainJob, so its options are not "
            f"known; copy it: kubectl -n {namespace}{cluster.flags} get trainjob {name} -o yaml"
        ) from error
    earlier = options.from_mapping(content, source=f"--from {name}")
    return dataclasses.replace(earlier, name=None), _code(cluster, found, namespace=namespace)


def base(name: str) -> str:
    """Give the name without what made it unique, so that a repetition is not `a-x1y2z-b3c4d`."""
    return re.sub(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$", "", name)


def _code(cluster: asked.Cluster, job: raw.JsonObject, *, namespace: str) -> Code:
    name = _config_map(job)
    found = asked.find(cluster, CONFIG_MAP, namespace=namespace, name=name) if name else None
    files = raw.strings((found or {}).get("binaryData"))
    try:
        launcher = base64.b64decode(files[workspace.LAUNCHER], validate=True)
        archive = files.get(workspace.ARCHIVE)
        notes = raw.strings(raw.at(job, ("metadata", "annotations")))
        return Code(
            launcher=launcher,
            stored=_stored(notes),
            archive=base64.b64decode(archive, validate=True) if archive else None,
            source=notes.get(contract.SOURCE_ANNOTATION, ""),
        )
    except (KeyError, binascii.Error) as error:
        raise fault.ClientError(
            f"--from: the ConfigMap {name or 'with the code'} of the job is gone; submit your own "
            "folder with --code DIR"
        ) from error


def _stored(notes: Mapping[str, str]) -> Stored | None:
    for item in inputs.parse(notes.get(contract.DATA_ANNOTATION, "")):
        if item.name == workspace.CODE_INPUT:
            base = str(item.uri).rpartition("/")[0]
            return Stored(base=base, sha256=item.uri.sha256)
    return None


def _config_map(job: raw.JsonObject) -> str:
    for patch in trainjob.patches(job):
        for volume in raw.sequence(patch.spec.get("volumes")):
            if raw.mapping(volume).get("name") == workspace.CODE_VOLUME:
                return raw.text(raw.at(volume, ("configMap", "name")))
    return ""
