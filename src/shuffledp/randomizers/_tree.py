"""Trees over k ordered leaves, for counts that are known with an error at every level.

Level l cuts 0, ..., k - 1 into blocks of ``strides[l]`` leaves, branching^j of them, the last one perhaps
shorter; the root is left out. Whatever a noisy node says of its block is brought together by least squares
(Hay, Rastogi, Miklau, Suciu 2010): with the weight w_l of a node of level l, the leaves x minimise

    sum over levels and nodes of w_l (noisy count of the node - sum of x in its block)^2

among those of a known total, so M x = y - constant with y the weighted noisy counts above each leaf and
M = sum of w_l B_l, B_l the blocks of ones.

>>> tree = Tree(5, 2)
>>> tree.sizes
(2, 3, 5)
>>> [level.tolist() for level in tree.totals(np.arange(5.0))]
[[6.0, 4.0], [1.0, 5.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp._certified.rounding import Floats


@dataclass(frozen=True)
class Tree:
    """Of k >= 2 leaves, with at most ``branching`` >= 2 children of a node."""

    k: int
    branching: int

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Leaves below a node, the top level first."""
        found = [1]
        while found[-1] * self.branching < self.k:
            found.append(found[-1] * self.branching)
        return tuple(reversed(found))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level: at least two."""
        return tuple(-(-self.k // stride) for stride in self.strides)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first symbol of each level, if nodes are numbered level by level."""
        return tuple(int(start) for start in np.cumsum([0, *self.sizes[:-1]]))

    def levels(self, nodes: Any) -> list[Any]:
        """An array of all nodes (its last axis), level by level."""
        return np.split(np.asarray(nodes), self.starts[1:], axis=-1)

    def totals(self, leaves: Any) -> list[Floats]:
        """The sums over every node's block, level by level; leaves are the last axis."""
        found = [np.asarray(leaves, dtype=np.float64)]
        for size in self.sizes[-2::-1]:
            found.append(np.add.reduceat(found[-1], self.branching * np.arange(size), axis=-1))
        return found[::-1]

    def below(self, level: int, nodes: Floats) -> Floats:
        """What each leaf's own node of a level says."""
        return np.repeat(nodes, self.strides[level], axis=-1)[..., : self.k]

    def solve(self, weights: Sequence[float], right: Any, total: float) -> Floats:
        """x of sum ``total`` with M x = right - constant (see module), along the last axis.

        The last weight must not be zero.

        Of a node's block alone, with the levels from the node's own on down, let t = 1' M^-1 1 and
        s = 1' M^-1 y: by Sherman and Morrison both are the children's sums over 1 + w (children's sum of t).
        Then, from the top, every block is told the sum of its ancestors' weighted totals: it is taken off
        y."""
        last, branching = len(weights) - 1, self.branching
        t = [np.full(self.k, 1.0 / weights[last])]
        s = [np.asarray(right, dtype=np.float64) / weights[last]]
        for level in range(last - 1, -1, -1):
            first = branching * np.arange(self.sizes[level])
            sums = [np.add.reduceat(part[0], first, axis=-1) for part in (t, s)]
            t.insert(0, sums[0] / (1.0 + weights[level] * sums[0]))
            s.insert(0, sums[1] / (1.0 + weights[level] * sums[0]))
        above: Any = (s[0].sum(axis=-1, keepdims=True) - total) / t[0].sum()
        for level in range(last):
            above = above + weights[level] * (s[level] - above * t[level])
            above = np.repeat(above, branching, axis=-1)[..., : self.sizes[level + 1]]
        return np.asarray(s[last] - above * t[last])
