"""Products of tables in blocks."""

import numpy as np
import pytest

from shuffledp._certified import products
from shuffledp._certified.products import product

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("size", [1, 7, 40, 10**6])
@pytest.mark.parametrize("shape", [(1, 5, 1), (13, 4, 6), (3, 9, 50), (30, 2, 1), (4, 0, 3)])
def test_blocks_of_any_size_make_up_the_product(
    monkeypatch: pytest.MonkeyPatch, size: int, shape: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(products, "_ALONE", size)
    rows, inner, columns = shape
    rng = np.random.default_rng(1)
    left, right = rng.integers(-9, 9, (rows, inner)), rng.integers(-9, 9, (columns, inner))
    whole = left @ right.T
    assert (product(left.astype(float), right.astype(float).T) == whole).all()
    assert (product(left + 2j * left, (right - 1j * right).T) == (3.0 + 1j) * whole).all()


def test_no_block_is_larger_than_one_thread_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    multiplied = np.matmul

    def counted(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> np.ndarray:
        seen.append(left.size * right.shape[1])
        return np.asarray(multiplied(left, right, out=out))

    monkeypatch.setattr(np, "matmul", counted)
    product(np.ones((300, 700)), np.ones((700, 200)))
    assert max(seen) <= products._ALONE
    assert sum(seen) == 300 * 700 * 200
