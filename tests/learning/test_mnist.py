"""The MNIST loader, on idx files made here: the real ones are recognised by their checksum."""

import gzip
import hashlib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from shuffledp.learning import mnist
from shuffledp.learning.mnist import load_mnist, parse_idx

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def idx(array: npt.NDArray[Any]) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Two tiny files that pass for the originals."""
    rng = np.random.default_rng(6)
    made = {IMAGES: idx(rng.integers(0, 256, (5, 28, 28))), LABELS: idx(np.arange(5))}
    for name, data in made.items():
        monkeypatch.setitem(mnist.SHA256, name, hashlib.sha256(data).hexdigest())
    return made


def test_an_idx_file_is_read_back() -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert np.array_equal(parse_idx(idx(array)), array)


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x09\x01\x00\x00\x00\x01a", b"\x1f\x8b\x08\x00"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="idx file of unsigned bytes"):
        parse_idx(data)


def test_a_short_file_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must hold \(3,\) bytes"):
        parse_idx(idx(np.arange(3))[:-1])


@pytest.mark.parametrize("packed", [False, True])
def test_plain_and_packed_files_give_images_and_labels(
    files: dict[str, bytes], tmp_path: Path, packed: bool
) -> None:
    for name, data in files.items():
        if packed:
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (tmp_path / name).write_bytes(data)
    images, labels = load_mnist(tmp_path).tensors
    assert images.shape == (5, 1, 28, 28)
    assert float(images.max()) <= 1.0
    assert torch.equal(
        (images * 255).round().to(torch.uint8), torch.from_numpy(parse_idx(files[IMAGES]))[:, None]
    )
    assert labels.tolist() == [0, 1, 2, 3, 4]


def test_another_data_set_is_never_called_mnist(tmp_path: Path) -> None:
    for name in (IMAGES, LABELS):
        (tmp_path / name).write_bytes(idx(np.zeros((2, 28, 28))))
    with pytest.raises(ValueError, match="is not the original"):
        load_mnist(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="t10k-images"):
        load_mnist(tmp_path, "test")


def test_a_wrong_split_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="split must be one of 'train', 'test'"):
        load_mnist(tmp_path, "validation")


class Response:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def read(self) -> bytes:
        return self.data


def test_a_download_is_checked_and_kept(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def serve(url: str, timeout: int) -> Response | None:
        asked.append(url)
        if url.startswith(mnist.MIRRORS[0]):
            raise urllib.error.URLError("down")
        return Response(gzip.compress(files[url.rsplit("/", 1)[1].removesuffix(".gz")]))

    monkeypatch.setattr(urllib.request, "urlopen", serve)
    folder = tmp_path / "new"
    assert len(load_mnist(folder, download=True)) == 5
    assert len(asked) == 4  # the first mirror fails, the second serves, for each of two files
    assert len(load_mnist(folder)) == 5
    assert len(asked) == 4


def test_a_corrupt_download_is_not_kept(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(url: str, timeout: int) -> Any:
        return Response(gzip.compress(b"something else"))

    monkeypatch.setattr(urllib.request, "urlopen", serve)
    with pytest.raises(ValueError, match="is not the original"):
        load_mnist(tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_download_names_every_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str, timeout: int) -> None:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(OSError, match=r"cvdf.*ossci"):
        load_mnist(tmp_path, download=True)
