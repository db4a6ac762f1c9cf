"""The original MNIST (LeCun, Cortes, Burges), from its idx files: 60,000 + 10,000 digits of 28 x 28.

The files are read from a folder (plain or gzip) or downloaded into it, and in both cases the unpacked
bytes must have the SHA-256 of the original: nothing else goes by that name here.
"""

from __future__ import annotations

import gzip
import hashlib
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import TensorDataset

from shuffledp import _validate
from shuffledp._files import write_bytes

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
SHA256 = {
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
}
_PREFIX = {"train": "train", "test": "t10k"}


def load_mnist(folder: str | Path, split: str = "train", *, download: bool = False) -> TensorDataset:
    """(images in [0, 1] of shape (n, 1, 28, 28), labels 0..9) of "train" or "test".

    FileNotFoundError if a file is missing and ``download`` is not set; ValueError if its bytes are
    not those of the original."""
    prefix = _PREFIX[_validate.one_of("split", split, _PREFIX)]
    images, labels = (
        parse_idx(_original(Path(folder), f"{prefix}-{kind}", download))
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    pixels = torch.from_numpy(images).to(torch.float32) / 255.0
    return TensorDataset(pixels[:, None], torch.from_numpy(labels).to(torch.int64))


def parse_idx(data: bytes) -> npt.NDArray[np.uint8]:
    """An idx file of unsigned bytes: two zero bytes, 8, the number of dimensions, the sizes, the bytes."""
    if len(data) < 4 or data[:3] != b"\x00\x00\x08" or len(data) < 4 + 4 * data[3]:
        raise ValueError(f"data must be an idx file of unsigned bytes, it begins {data[:4]!r}")
    start = 4 + 4 * data[3]
    shape = tuple(int(size) for size in np.frombuffer(data[4:start], dtype=">u4"))
    if len(data) - start != int(np.prod(shape)):
        raise ValueError(f"data must hold {shape} bytes after the header, got {len(data) - start} bytes")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()


def _original(folder: Path, name: str, download: bool) -> bytes:
    """The unpacked bytes of a file, checked."""
    plain, packed = folder / name, folder / f"{name}.gz"
    if plain.exists():
        return _checked(name, plain.read_bytes(), plain)
    if not packed.exists():
        if not download:
            raise FileNotFoundError(
                f"neither {plain} nor {packed} exists; give the folder of the idx files, or download=True"
            )
        data = _fetched(f"{name}.gz")
        unpacked = _checked(name, gzip.decompress(data), packed)
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(packed, data)
        return unpacked
    return _checked(name, gzip.decompress(packed.read_bytes()), packed)


def _checked(name: str, data: bytes, path: Path) -> bytes:
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256[name]:
        raise ValueError(f"{path} is not the original {name}: SHA-256 {found}, expected {SHA256[name]}")
    return data


def _fetched(name: str) -> bytes:
    failures = []
    for mirror in MIRRORS:
        try:
            with urllib.request.urlopen(mirror + name, timeout=60) as response:
                return bytes(response.read())
        except (urllib.error.URLError, TimeoutError) as error:
            failures.append(f"{mirror}: {error}")
    raise OSError(f"could not download {name}: " + "; ".join(failures))
