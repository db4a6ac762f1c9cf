"""The two tasks: handwritten digits, and clothes (Fashion-MNIST, Xiao, Rasul, Vollgraf 2017)."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import silhouettes
import strokes
import torch
from torch import Tensor

from shuffledp.learning.mnist import load_mnist, parse_idx

FASHION_SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


@dataclass(frozen=True)
class Task:
    name: str
    family: ModuleType
    """The random images that stand in for the task's own."""
    scales: int
    orientations: int
    kept: tuple[int, ...]
    """How many directions the search tries at epsilon = 3."""

    def load(self, folder: Path, split: str) -> tuple[Tensor, Tensor]:
        """(n, 28, 28) images in [0, 1], labels 0..9 of "train" or "test"; the originals or an error."""
        if self.name == "mnist":
            images, labels = load_mnist(folder, split).tensors
            return images[:, 0], labels
        pixels, classes = _fashion(folder, split)
        return pixels.float() / 255.0, classes.long()


def _fashion(folder: Path, split: str) -> Iterator[Tensor]:
    for kind in ("images-idx3", "labels-idx1"):
        name = f"{'train' if split == 'train' else 't10k'}-{kind}-ubyte"
        data = gzip.decompress((folder / f"{name}.gz").read_bytes())
        if hashlib.sha256(data).hexdigest() != FASHION_SHA256[name]:
            raise ValueError(f"{folder / name}.gz is not the original of Fashion-MNIST")
        yield torch.from_numpy(parse_idx(data))


TASKS = {
    "mnist": Task("mnist", strokes, scales=3, orientations=4, kept=(300,)),
    "fashion": Task("fashion", silhouettes, scales=2, orientations=8, kept=(300, 500, 800)),
}
