"""TFA017: no image whose Keras trains silently out of sync.

Keras 3.0 to 3.4 does not sum gradients over the workers of a MultiWorkerMirroredStrategy: no
error, the printed loss is the same everywhere, and the weights drift apart. Which images carry it
is a setting (`unsynchronisedImages`); the default names NVIDIA's 24.06 to 25.02, the last of which
has 3.3.2.
"""

import fnmatch
from collections.abc import Iterator

from tfadmit_webhook import raw
from tfadmit_webhook.policy.rule import Case, Finding, Rule


def check(case: Case) -> Iterator[Finding]:
    """Find images of workers that the settings name."""
    for job in case.tasks:
        for container in job.pod.containers():
            image = raw.text(container.content.get("image"))
            if any(fnmatch.fnmatchcase(image, known) for known in _known(case)):
                yield Finding(
                    path=(*job.template_path, *container.path, "image"),
                    what=f"{image} has Keras 3.0 to 3.4",
                    fix="use an image with Keras 2, or with 3.8 and newer",
                )


def _known(case: Case) -> tuple[str, ...]:
    return case.settings.unsynchronised_images


RULE = Rule(
    id="TFA017",
    name="keras-sync",
    subject="runtime",
    level="warn",
    why="with more than one worker gradients are not summed, and nothing says so",
    check=check,
)
