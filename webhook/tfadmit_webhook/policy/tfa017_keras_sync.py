"""TFA017: no image whose Keras trains silently out of sync.

Keras 3.0 to 3.4 does not sum gradients over the workers of a MultiWorkerMirroredStrategy: no
error, the printed loss is the same everywhere, and the weights drift apart. Which images carry it
is a setting (`unsynchronisedImages`); the default names NVIDIA's 24.06 to 25.02, the last of which
has 3.3.2. Of a TrainJob the image that it names itself is looked at, if there are several workers.
"""

import fnmatch
from collections.abc import Iterator

from tfadmit_webhook import raw, runtime
from tfadmit_webhook.policy.rule import Case, Finding, Rule

_IMAGE: raw.Path = ("spec", "trainer", "image")


def check(case: Case) -> Iterator[Finding]:
    """Find images of workers that the settings name."""
    for path, image in _images(case):
        if any(fnmatch.fnmatchcase(image, known) for known in case.settings.unsynchronised_images):
            yield Finding(
                path=path,
                what=f"{image} has Keras 3.0 to 3.4",
                fix="use an image with Keras 2, or with 3.8 and newer",
            )


def _images(case: Case) -> Iterator[tuple[raw.Path, str]]:
    if case.subject == "trainjob":
        # A runtime may be meant for one worker or many; of a TrainJob it is known.
        if runtime.tasks(case.jobs, "chief") + runtime.tasks(case.jobs, "worker") > 1:
            yield _IMAGE, raw.text(raw.at(case.content, _IMAGE))
        return
    for job in case.tasks:
        for container in job.pod.containers():
            path = (*job.template_path, *container.path, "image")
            yield path, raw.text(container.content.get("image"))


RULE = Rule(
    id="TFA017",
    name="keras-sync",
    subjects=frozenset({"runtime", "trainjob"}),
    level="warn",
    why="with more than one worker gradients are not summed, and nothing says so",
    check=check,
)
