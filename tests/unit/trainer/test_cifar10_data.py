"""Reading batches without NumPy: what is missing, and what must not be read."""

import os
import pickle

import pytest

from tfadmit_trainer.examples import cifar10, cifar10_data


class Evil:
    """Runs a command when it is read."""

    def __reduce__(self):
        return os.system, ("echo evil",)


@pytest.fixture
def place(tmp_path):
    for name in (*cifar10_data.TRAIN_FILES, cifar10_data.TEST_FILE):
        (tmp_path / name).write_bytes(pickle.dumps({b"data": [], b"labels": []}))
    return tmp_path


def test_no_directory(tmp_path):
    with pytest.raises(cifar10_data.DataError) as caught:
        cifar10_data.load_cifar10_local(str(tmp_path / "none"))
    text = str(caught.value)
    assert "there is no such directory" in text
    assert "Nothing is downloaded" in text
    assert "type: Directory" in text
    assert caught.value.exit_code == 2


def test_a_missing_file_is_named(place):
    (place / "data_batch_3").unlink()
    with pytest.raises(cifar10_data.DataError, match="missing: data_batch_3"):
        cifar10_data.load_cifar10_local(str(place))


@pytest.mark.parametrize("content", [pickle.dumps({b"data": Evil()}), b"", b"<html>", b"\x80\x05"])
def test_other_pickles_are_refused_and_nothing_of_them_runs(place, content, capfd):
    (place / "data_batch_1").write_bytes(content)
    with pytest.raises(cifar10_data.DataError, match="is no batch of CIFAR-10 in python format"):
        cifar10_data.read(place / "data_batch_1")
    assert "evil" not in capfd.readouterr().out


def test_the_directory_is_the_users_to_name():
    assert cifar10_data.directory_from({}) == "/workspace/data/cifar-10-batches-py"
    assert cifar10_data.directory_from({"CIFAR10_DIR": "/data"}) == "/data"


def test_options():
    assert cifar10.Options.read({}) == cifar10.Options(epochs=10, batch_size=64)
    assert cifar10.Options.read({"EPOCHS": "3", "LEARNING_RATE": "0.1"}).epochs == 3
    with pytest.raises(cifar10_data.DataError, match="EPOCHS='many' is no number"):
        cifar10.Options.read({"EPOCHS": "many"})
