"""Optional packages, imported when they are needed.

>>> needed("json", extra="collect").dumps([1])
'[1]'
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, *, extra: str) -> Any:
    """The module, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{package} is needed for this: pip install 'shuffledp[{extra}]'") from error
