"""What is loaded on first use: public names, from the stub beside a package's ``__init__``, and extras.

``__init__.pyi`` is the one list: type checkers read it, and so does this loader. Every line of it is
``from shuffledp.home import Name as Name``, or names in brackets; from the package itself come modules.

>>> needed("json", extra="collect").dumps([1])
'[1]'
"""

from __future__ import annotations

import ast
import sys
from functools import cached_property
from importlib import import_module
from pkgutil import get_data
from typing import Any


class PublicNames:
    """The names that the stub of ``package`` imports."""

    def __init__(self, package: str) -> None:
        self.package = package

    @cached_property
    def _homes(self) -> dict[str, str]:
        stub = ast.parse(get_data(self.package, "__init__.pyi") or b"")
        imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    @property
    def names(self) -> list[str]:
        """All of them, sorted."""
        return sorted(self._homes)

    def load(self, name: str) -> Any:
        """The value of a name, kept in the package from then on."""
        if name not in self._homes:
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        home = self._homes[name]
        module = home == self.package
        value = import_module(f"{home}.{name}") if module else getattr(import_module(home), name)
        setattr(sys.modules[self.package], name, value)
        return value


def needed(module: str, *, extra: str | None = None) -> Any:
    """The module of an optional package, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        install = package if extra is None else f"'shuffledp[{extra}]'"
        raise ImportError(f"{package} is needed for this: pip install {install}") from error
