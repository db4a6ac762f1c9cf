"""Randomized response at one level of a tree, drawn at random by everybody (Theorem T25).

Values are 0, ..., k - 1, the leaves of a tree. Everybody draws a level, all alike, whatever the own value,
and reports by randomized response with epsilon0 in which of its nodes the value lies: one symbol, which shows
the level. So a person answers one level only, and nothing adds up over levels. Of two values that lie apart
at every level the law is, per type of report, with q_l the probability of a given false node of level l,
Q = mean of q_l and E = e^epsilon0,

    the node of x, any level       own E Q, other Q, clone Q
    the node of x', any level      own Q, other E Q, clone Q
    any other                      own = other = clone = 1 - (E + 1) Q

and no other two values are told apart better. Estimates are least squares over all levels: consistent (a node
is the sum of its children, all leaves sum to n), unbiased, and of a variance that is known exactly.

>>> answer = LeveledResponse(k=64, epsilon0=2.0, branching=4)
>>> answer.sizes
(4, 16, 64)
>>> reports = answer.randomize([5] * 3000)
>>> round(float(answer.estimate(answer.support(reports), n=3000).sum()), 6)
3000.0

Level l of a tree cuts 0, ..., k - 1 into blocks of ``strides[l]`` leaves, branching^j of them, the last one
perhaps shorter; the root is left out. Noisy nodes are brought together by least squares (Hay,
Rastogi, Miklau, Suciu 2010): with the weight w_l of a node of level l, the leaves x minimise

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

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp._randomness.uniform import uniform
from shuffledp._randomness.words import Words
from shuffledp.bound import Bound
from shuffledp.facts import AmplificationLaw, Facts, response_probabilities
from shuffledp.randomizers._categories import CategoricalRandomizer, Counts, Integers
from shuffledp.randomizers.kary import KaryRandomizedResponse

MOST_LEAVES = 2**20


@dataclass(frozen=True, init=False)
class LeveledResponse(CategoricalRandomizer):
    """The node of a random level of a tree, by randomized response.

    ``branching``: the most children of a node (default: k, one level, which is randomized response)."""

    k: int
    epsilon0: float
    branching: int

    def __init__(self, k: int, epsilon0: float, branching: int | None = None) -> None:
        leaves = _validate.count("k", k, least=2, most=MOST_LEAVES)
        each = leaves if branching is None else _validate.count("branching", branching, least=2, most=leaves)
        _validate.assign(self, k=leaves, epsilon0=_validate.epsilon0(epsilon0), branching=each)

    @cached_property
    def tree(self) -> Tree:
        """Over the k values."""
        return Tree(self.k, self.branching)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level, the top one first."""
        return self.tree.sizes

    @cached_property
    def responses(self) -> tuple[KaryRandomizedResponse, ...]:
        """What is run at each level."""
        return tuple(KaryRandomizedResponse(size, epsilon0=self.epsilon0) for size in self.sizes)

    @property
    def total_variation(self) -> float:
        return math.fsum(response.total_variation for response in self.responses) / len(self.sizes)

    def facts(self) -> Facts:
        """Of what was asked, from above (T25); of what is sampled, from below."""
        if len(self.sizes) == 1:
            return self.responses[0].facts()
        each = [response_probabilities(size, self.epsilon0) for size in self.sizes]
        q, p, gap = (math.fsum(column) / len(each) for column in zip(*each, strict=True))
        rest = math.fsum((size - 2) * one[0] for size, one in zip(self.sizes, each, strict=True)) / len(each)
        law = AmplificationLaw((p, q, rest), (q, p, rest), (q, q, rest), (gap, -gap, 0.0))
        attained = min(response.realised.epsilon0 for response in self.responses)
        return Facts(
            Bound(attained, self.epsilon0),
            total_variation=gap,
            above=(law,),
            concrete=tuple(self._concrete(third) for third in (self.k // 2, 0)),
        )

    def concrete_inputs(self) -> tuple[Any, ...]:
        """The two ends, where all others hold the middle, or an end."""
        apart = ((0, self.k - 1, self.k // 2),) if self.k > 2 else ()
        return (*apart, (0, self.k - 1, 0))

    def _likelihoods(self, reports: Integers, values: Counts) -> Floats:
        level = np.searchsorted(self.tree.starts, reports, side="right") - 1
        node = reports.astype(np.int64) - np.array(self.tree.starts)[level]
        held = values // np.array(self.tree.strides)[level][:, None]
        known = np.array([response._support_fractions() for response in self.responses], np.float64)[level]
        return np.where(held == node[:, None], known[:, :1], known[:, 1:])

    def _concrete(self, third: int) -> AmplificationLaw:
        """Of x = 0 and x' = k - 1 where all others hold ``third``, as sampled.

        At every level it is seen which of the three a report names; levels where the same ones of them share
        a node are looked at as one."""
        seen: dict[tuple[Any, ...], list[Fraction]] = {}
        for stride, response in zip(self.tree.strides, self.responses, strict=True):
            p, q = response._support_fractions()
            nodes = [leaf // stride for leaf in (0, self.k - 1, third)]
            shared = (nodes[2] == nodes[0], nodes[2] == nodes[1])
            for node in dict.fromkeys(nodes):
                masses = [p if held == node else q for held in nodes]
                _add(seen, (shared, nodes.index(node)), masses)
            _add(seen, (shared, "rest"), [(response.k - len(set(nodes))) * q] * 3)
        levels = len(self.sizes)
        own, other, third_ = (
            tuple(float(m / levels) for m in column) for column in zip(*seen.values(), strict=True)
        )
        return AmplificationLaw(
            own, other, third_, tuple(float((a - b) / levels) for a, b, _ in seen.values())
        )

    @property
    def support_size(self) -> int:
        """Every report is one entry of the tally."""
        return 1

    @property
    def outputs(self) -> int:
        return sum(self.sizes)

    @property
    def _words_per_value(self) -> int:
        return 2

    def randomize(self, values: Any, *, rng: np.random.Generator | None = None) -> Any:
        """One symbol per value: the nodes of all levels are numbered through, the top level first."""
        _validate.sampled_epsilon0(self.epsilon0)
        return super().randomize(values, rng=rng)

    def _sample(self, values: Integers, words: Words) -> Integers:
        drawn = uniform(words, len(self.sizes), values.size)
        reports = np.empty(values.size, dtype=self.report_dtype)
        rows = zip(self.tree.strides, self.tree.starts, self.responses, strict=True)
        for level, (stride, start, response) in enumerate(rows):
            here = np.flatnonzero(drawn == level)
            nodes = (values[here] // stride).astype(response.report_dtype)
            reports[here] = response._sample(nodes, words).astype(self.report_dtype) + self.report_dtype.type(
                start
            )
        return reports

    def _settings(self, sent: Any) -> Iterator[tuple[int, float, float, float]]:
        """Per level: its number, the reports that came of it, q and p - q."""
        for level, (response, came) in enumerate(zip(self.responses, sent, strict=True)):
            p, q = response._support_fractions()
            if p == q:
                raise ValueError(f"reports of {self!r} do not depend on the values: nothing to estimate")
            yield level, float(came), float(q), float(p - q)

    def weights(self, sent: Any) -> list[float]:
        """Of a node of each level in the least squares: one over its variance if people are spread evenly.

        ``sent``: how many reports came of each level. ValueError if none came of the last one."""
        if not sent[-1]:
            raise ValueError(
                f"too few reports: none is of the last of {len(self.sizes)} levels, each is drawn at random"
            )
        found = ((came * gap**2, self.sizes[level]) for level, came, _, gap in self._settings(sent))
        return [amount * size**2 / (size - 1.0) for amount, size in found]

    def estimate(self, support: Any, n: int) -> Floats:
        """Unbiased, consistent estimates of how many of n users hold each value."""
        users = _validate.count("n", n)
        seen = self.tree.levels(_validate.counts("support", support, self.outputs, users))
        sent = [int(part.sum()) for part in seen]
        weights = self.weights(sent)
        noisy = sum(
            weights[level] * self.tree.below(level, users * (seen[level] / came - q) / gap)
            for level, came, q, gap in self._settings(sent)
            if came
        )
        return self.tree.solve(weights, noisy, total=users)

    def variance(self, counts: Any, n: int, *, sums: Any = None, sent: Any = None) -> Floats:
        """The exact variance of estimates when n users hold the values ``counts`` times (T25).

        Of the sums of estimates with the coefficients ``sums`` (rows of length k; default: each value), given
        that ``sent`` reports came of each level (default: equally many)."""
        users = _validate.count("n", n)
        share = np.asarray(counts, dtype=np.float64) / users
        rows = np.eye(self.k) if sums is None else np.atleast_2d(np.asarray(sums, dtype=np.float64))
        came = [users / len(self.sizes)] * len(self.sizes) if sent is None else sent
        weights = self.weights(came)
        solved = self.tree.totals(self.tree.solve(weights, rows, total=0.0))
        found = -_spread(share, rows) * users * _finite(users)
        least = np.zeros(len(rows))  # of any counts: estimated ones may be negative
        for level, reports, q, gap in self._settings(came):
            if reports:
                mean = weights[level] * solved[level]  # of what a report of the level adds, and a constant
                score = mean / gap
                held = self.tree.totals(share)[level]
                sums_of = q * score.sum(axis=-1, keepdims=True) + gap * score
                squares = q * (score**2).sum(axis=-1, keepdims=True) + gap * score**2
                noise = squares - sums_of**2
                least += users**2 / reports * noise.min(axis=-1)
                spread = (noise * held).sum(axis=-1) + _finite(users) * _spread(held, mean)
                found += users**2 / reports * spread
        return np.maximum(found, least)


def _add(seen: dict[tuple[Any, ...], list[Fraction]], key: tuple[Any, ...], masses: list[Fraction]) -> None:
    before = seen.get(key, [Fraction(0)] * 3)
    if any(masses):
        seen[key] = [a + b for a, b in zip(before, masses, strict=True)]


def _spread(share: Floats, rows: Floats) -> Floats:
    """The variance of the entries of each row, of the shares ``share``."""
    middle = (share * rows).sum(axis=-1, keepdims=True)
    return np.asarray((share * (rows - middle) ** 2).sum(axis=-1))


def _finite(users: int) -> float:
    """Of people drawn without replacement: n / (n - 1)."""
    return users / (users - 1.0) if users > 1 else 0.0


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
