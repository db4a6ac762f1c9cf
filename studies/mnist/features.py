"""Fixed features of an image, made without looking at any data: wavelets, and a network that saw dice only.

The network is that of contrast.py. Beside it a wavelet scattering transform:

Mallat 2012 / Bruna and Mallat 2013: convolve with oriented Morlet wavelets, take the modulus, repeat,
then blur and subsample. Only a linear model on top is learned from clients, which keeps the reports short:

    order 0: x * phi,   order 1: |x * psi_1| * phi,   order 2: ||x * psi_1| * psi_2| * phi.
"""

from __future__ import annotations

import math

import torch
from contrast import embedded
from plan import Size
from tasks import Task
from torch import Tensor, nn
from torch.nn.functional import normalize


def _gabor(size: int, sigma: float, theta: float, xi: float, slant: float) -> Tensor:
    """A periodised Gabor function on a size x size torus, centred on the origin."""
    shifts = torch.arange(-2, 3, dtype=torch.float64) * size
    line = torch.arange(size, dtype=torch.float64)[:, None] + shifts
    rows, columns = line.reshape(size, 1, 5, 1), line.reshape(1, size, 1, 5)
    along = math.cos(theta) * rows + math.sin(theta) * columns
    across = -math.sin(theta) * rows + math.cos(theta) * columns
    envelope = torch.exp(-(along**2 + (slant * across) ** 2) / (2.0 * sigma**2))
    wave = envelope * torch.exp(1j * xi * along)
    return wave.sum(dim=(2, 3)) * slant / (2.0 * math.pi * sigma**2)


def _morlet(size: int, scale: int, theta: float, orientations: int) -> Tensor:
    """A Gabor function less its mean: no response to a constant image. In the Fourier domain."""
    sigma, xi, slant = 0.8 * 2.0**scale, 0.75 * math.pi / 2.0**scale, 4.0 / orientations
    wave = _gabor(size, sigma, theta, xi, slant)
    bump = _gabor(size, sigma, theta, 0.0, slant)
    spectrum: Tensor = torch.fft.fft2(wave - wave.sum() / bump.sum() * bump)
    return spectrum


class Scattering:
    """(n, size, size) images -> (n, channels, size // 2^scales, size // 2^scales) coefficients."""

    def __init__(self, size: int, scales: int, orientations: int, device: str = "cpu") -> None:
        self.stride = 2**scales
        blur = torch.fft.fft2(_gabor(size, 0.8 * 2.0 ** (scales - 1), 0.0, 0.0, 1.0)).real
        self.blur = blur.to(torch.float32).to(device)
        angles = [math.pi * i / orientations for i in range(orientations)]
        self.waves = [
            torch.stack([_morlet(size, j, a, orientations) for a in angles]).to(torch.complex64).to(device)
            for j in range(scales)
        ]

    def _pooled(self, spectrum: Tensor) -> Tensor:
        smooth: Tensor = torch.fft.ifft2(spectrum * self.blur).real
        return smooth[..., :: self.stride, :: self.stride]

    def __call__(self, images: Tensor) -> Tensor:
        spectrum = torch.fft.fft2(images)[:, None]
        pooled = [self._pooled(spectrum)]
        for j, first in enumerate(self.waves):
            inner = torch.fft.fft2(torch.fft.ifft2(spectrum * first).abs())
            pooled.append(self._pooled(inner))
            for second in self.waves[j + 1 :]:
                modulus = torch.fft.ifft2(inner[:, :, None] * second).abs().flatten(1, 2)
                pooled.append(self._pooled(torch.fft.fft2(modulus)))
        return torch.cat(pooled, dim=1)


def normalised(coefficients: Tensor, group: int) -> Tensor:
    """Order 0, then every ``group`` channels: mean zero and variance one within each image; flat."""
    channels = coefficients.shape[1]
    parts = torch.split(coefficients, [1] + [group] * ((channels - 1) // group), dim=1)
    return torch.cat([_standard(part) for part in parts], dim=1).flatten(1)


def _standard(part: Tensor) -> Tensor:
    centred = part - part.mean(dim=(1, 2, 3), keepdim=True)
    return centred / (centred.square().mean(dim=(1, 2, 3), keepdim=True).sqrt() + 1e-4)


class Representation:
    """Images -> unit vectors: scattering and network, the leading directions of random images, evened out.

    The mean and the covariance come from the task's random images. Each of the ``kept`` leading directions
    is divided by its variance to the ``power``: 0 keeps the shape, 1/2 makes all directions equal."""

    def __init__(self, task: Task, body: nn.Sequential, size: Size, device: str = "cpu") -> None:
        self.orientations = task.orientations
        self.scattering = Scattering(28, task.scales, task.orientations, device)
        self.body = body
        generator = torch.Generator(device).manual_seed(5)
        blocks = [
            task.family.view(task.family.prototypes(rows, generator), generator)
            for rows in [1000] * (size.drawn // 1000) or [size.drawn]
        ]
        drawn = self.raw(torch.cat(blocks))
        self.mean = drawn.mean(dim=0)
        centred = (drawn - self.mean).double()
        variance, axes = torch.linalg.eigh(centred.T @ centred / len(centred))
        self.variance, self.axes = variance.flip(0).clamp_min(1e-12).float(), axes.flip(1).float()

    def raw(self, images: Tensor) -> Tensor:
        """(n, 28, 28) -> unit vectors, half of their square length from each of the two."""
        blocks = [normalised(self.scattering(x), self.orientations) for x in torch.split(images, 1000)]
        both = [normalize(embedded(self.body, images)), normalize(torch.cat(blocks))]
        return normalize(torch.cat(both, dim=1))

    def turned(self, raw: Tensor, kept: int, power: float) -> Tensor:
        """-> (n, kept + 1): a unit vector, and a small constant for the intercepts."""
        unit = normalize((raw - self.mean) @ self.axes[:, :kept] * self.variance[:kept] ** -power)
        return torch.cat([unit, torch.full_like(unit[:, :1], 0.1)], dim=1)
