"""One text for equal values: what is hashed, compared and written line by line.

>>> canonical({"n": 1, "k": [2, 3]})
'{"k":[2,3],"n":1}'
>>> fingerprint({}) == fingerprint({"n": 1})
False
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, plain ASCII, no nan."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(value: Any) -> Any:
    """What JSON can say: no infinity but the string, and what it does not know as text."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity"
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def fingerprint(value: Any) -> str:
    """The SHA-256 of the canonical text: 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
