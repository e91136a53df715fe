"""Names of images."""

import pytest

from harness.node import images


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("tfadmit/webhook:0.1.0", "docker.io/tfadmit/webhook:0.1.0"),
        ("example.com/a:1", "example.com/a:1"),
        ("nvcr.io/nvidia/tensorflow:24.03-tf2-py3", "nvcr.io/nvidia/tensorflow:24.03-tf2-py3"),
    ],
)
def test_a_name_without_a_registry_is_one_of_the_default_registry(name, full):
    assert images.full_name(name) == full
