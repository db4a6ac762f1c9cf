"""Only the module of rounding knows how small is nothing, how large is too large, how far is outward."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import shuffledp

pytestmark = pytest.mark.quick

SOURCE = Path(shuffledp.__file__).parent
ROUNDING = Path("_certified/rounding.py")
INDEPENDENT = ("verifying", "_randomness")
"""The first in balls, without the kernel's numerics; in the second 2^-53 is a step of random numbers."""
GUARDS = {1e-300, 1e-290, 700.0, -700.0}
SMALL = 1e-6  # what is added to or taken from one, below this, is a rounding


def small_names(tree: ast.Module) -> set[str]:
    """Constants of the module that are roundings by their size, and UNIT."""
    found = {"UNIT", "OUTWARD"}
    for node in tree.body:
        if isinstance(node, ast.Assign) and is_small(node.value, found):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def is_small(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Constant(value=float(value)):
            return 0.0 < value < SMALL
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return is_small(left, names) or is_small(right, names)
        case ast.BinOp(
            op=ast.Pow(),
            left=ast.Constant(value=base),
            right=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=power)),
        ):
            assert isinstance(base, float | int)
            assert isinstance(power, float | int)
            return float(base) ** -power <= SMALL
    return False


def is_unit(node: ast.expr) -> bool:
    """UNIT, or the same in figures."""
    return ast.unparse(node) in ("UNIT", "2.0 ** (-52)", "2.0 ** (-53)", "2.0 ** -52", "2.0 ** -53")


def stray(tree: ast.Module) -> Iterator[int]:
    """Lines with a guard, with one plus or minus a little, or with products and sums of the unit."""
    names = small_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=float(value), lineno=line) if value in GUARDS:
                yield line
            case ast.BinOp(left=ast.Constant(value=1.0 | 1), op=ast.Add() | ast.Sub(), right=right):
                if is_small(right, names):
                    yield node.lineno
            case ast.BinOp(op=ast.Mult() | ast.Add() | ast.Sub(), left=left, right=right):
                if any(is_unit(part) for part in (left, right)):
                    yield node.lineno


@pytest.mark.thorough
def test_roundings_and_guards_are_nowhere_but_in_their_module() -> None:
    found: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE)
        if name == ROUNDING or name.parts[0] in INDEPENDENT:
            continue
        lines = sorted(set(stray(ast.parse(path.read_text(encoding="utf-8")))))
        found += [f"{name.as_posix()}:{line}" for line in lines]
    assert not found, f"use shuffledp._certified.rounding: {found}"
