"""What a report file says about itself, and the errors of files that cannot be used.

>>> import numpy as np
>>> header = Header.new("shuffled", {"protocol": "histogram"}, np.dtype(np.uint8), (2,))
>>> Header.from_json(header.to_json(), "somewhere") == header
True
"""

from __future__ import annotations

import json
import math
import os
import secrets
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from shuffledp import _json
from shuffledp.errors import DamagedReportsError, UnknownVersionError, short

VERSION = 1
FORMAT = "shuffledp reports"
STAGES = ("randomized", "shuffled")
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class Header:
    """The self-description of a report file.

    Attributes:
        stage: "randomized" (in the senders' order) or "shuffled".
        protocol: the protocol's ``to_dict()``.
        dtype, shape: of one report, the least significant byte first.
        batch: a random name, so that the same reports are not taken twice.
    """

    stage: str
    protocol: dict[str, Any]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    batch: str

    @classmethod
    def new(
        cls, stage: str, protocol: dict[str, Any], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> Self:
        """A header for a new batch."""
        as_read = json.loads(_json.canonical(protocol))  # tuples become lists, as they do in files
        return cls(stage, as_read, dtype.newbyteorder("<"), shape, secrets.token_hex(16))

    def to_json(self) -> str:
        """One text for equal headers."""
        return _json.canonical(
            {
                "format": FORMAT,
                "version": VERSION,
                "stage": self.stage,
                "protocol": self.protocol,
                "dtype": self.dtype.str,
                "shape": self.shape,
                "batch": self.batch,
            }
        )

    @classmethod
    def from_json(cls, text: str, path: str | os.PathLike[str]) -> Self:
        """The header of the file ``path``."""
        name = os.fspath(path)
        try:
            entries = json.loads(text)
            if entries["format"] != FORMAT:
                raise ValueError(f"format {entries['format']!r}")
            version = entries["version"]
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedReportsError(f"{name!r} has a damaged header: {error}") from error
        if version != VERSION:
            raise UnknownVersionError(
                f"{name!r} has version {version!r} of the report format; this release of shuffledp "
                f"reads version {VERSION}"
            )
        try:
            return cls._checked(entries)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedReportsError(f"{name!r} has a damaged header: {error}") from error

    @classmethod
    def _checked(cls, entries: dict[str, Any]) -> Self:
        stage, protocol, batch = entries["stage"], entries["protocol"], entries["batch"]
        dtype, shape = np.dtype(entries["dtype"]), tuple(entries["shape"])
        if stage not in STAGES or not isinstance(protocol, dict) or not isinstance(batch, str):
            raise ValueError("stage, protocol or batch is not what it should be")
        if dtype.kind not in "iufb" or not all(isinstance(s, int) and s >= 1 for s in shape):
            raise ValueError(f"reports cannot have dtype {dtype} and shape {shape}")
        if dtype.itemsize * math.prod(shape) > _MOST_BYTES:
            raise ValueError(f"reports of shape {shape} are too large")
        return cls(stage, protocol, dtype.newbyteorder("<"), shape, batch)

    def describes(self, other: Header) -> bool:
        """Whether the reports of both are of the same protocol with the same parameters."""
        same = (self.dtype, self.shape) == (other.dtype, other.shape)
        # As texts: Python takes True for 1, and 1 for 1.0.
        return same and _json.canonical(self.protocol) == _json.canonical(other.protocol)


def differences(first: dict[str, Any], second: dict[str, Any]) -> str:
    """The parameters in which two protocols differ, in words.

    >>> differences({"n": 1, "epsilon": 1.0}, {"n": 2, "epsilon": 1.0})
    'n is 1 and 2'
    """
    texts = [{key: _json.canonical(value) for key, value in d.items()} for d in (first, second)]
    names = [key for key in first | second if texts[0].get(key) != texts[1].get(key)]
    told = [f"{k} is {short(first.get(k))} and {short(second.get(k))}" for k in names[:3]]
    return "; ".join(told) or "the type of their reports"
