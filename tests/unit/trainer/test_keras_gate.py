"""What each version of Keras may do with several replicas."""

import sys
import types

import pytest

from tfadmit_trainer import keras_gate


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ((2, 15), "fine"),
        ((3, 0), "unsummed"),
        ((3, 4), "unsummed"),
        ((3, 5), "no fit"),
        ((3, 9), "no fit"),
        ((3, 10), "compat"),
        ((3, 15), "compat"),
        ((4, 0), "compat"),
    ],
)
def test_the_verdict(version, verdict):
    assert keras_gate.judge(version) == verdict


@pytest.fixture
def installed(monkeypatch):
    def add(name, version, backend=None):
        module = types.ModuleType(name)
        module.__dict__["__version__"] = version
        if backend:
            module.__dict__["backend"] = types.SimpleNamespace(backend=lambda: backend)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return add


def test_the_keras_in_use_is_the_one_of_the_environment(installed):
    three = installed("keras", "3.15.1", "tensorflow")
    two = installed("tf_keras", "2.21.0")
    assert keras_gate.module({}) is three
    assert keras_gate.module({"TF_USE_LEGACY_KERAS": "1"}) is two
    assert keras_gate.version(two) == (2, 21)


def test_a_keras_on_another_backend_is_none_of_ours(installed):
    installed("keras", "3.15.1", "jax")
    assert keras_gate.module({}) is None


def test_no_keras_at_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    assert keras_gate.module({}) is None
