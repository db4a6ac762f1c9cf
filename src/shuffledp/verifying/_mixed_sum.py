"""Sums and vectors by split and mix, in balls: Theorems T17, T18 (docs/proofs/split-and-mix.md) and T22."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from flint import arb, arb_poly, ctx

from shuffledp.errors import NoCertificateError
from shuffledp.verifying._balls import positive

_MOST_SIZES = 1200  # speed: whose A_j are computed one by one
_FEWEST_MESSAGES = 3
_DEPTH, _MOST_OUTCOMES = 45.0, 1 << 18  # speed: of a table of noise, in scales, and in all


def noisy_sum(levels: int, scale: arb, off: arb, epsilon: arb) -> arb:
    """The curve of a sum with discrete Laplace noise, and (1 + alpha) ``off``: at this epsilon or a smaller
    one, as the truth falls."""
    a = (-1 / scale).exp()

    def at(epsilon: arb) -> arb:
        # Half-lines {k <= t} are best, and the best t is next to (levels - epsilon scale)/2.
        grown, best = epsilon.exp(), arb(0)
        middle = int((levels - float((epsilon * scale).mid())) / 2)
        for t in range(max(middle - 2, 0), middle + 3):
            below = 1 - a ** (t + 1) / (1 + a)
            other = a ** (levels - t) / (1 + a) if t <= levels else 1 - a ** (t - levels + 1) / (1 + a)
            best = best.max(below - grown * other)
        return best + (1 + grown) * off

    # The smallest sum is where the event's probability is what is off: float looks for it.
    log = float((off * (1 + a)).log().mid()) if off > 0 else 0.0
    flat = (levels - 2 * max(int(levels + float(scale) * log), 0)) / float(scale)
    return at(epsilon).min(at(arb(flat))) if off > 0 and 0.0 <= flat <= float(epsilon) else at(epsilon)


def thinned_sum(levels: int, scale: float, share: tuple[int, int], off: arb, epsilon: arb) -> arb:
    """The same with only a ``share`` (people, of so many) of the noise: all outcomes, and what is cut off.

    An outcome that the law of the noise has more of than its table adds at most that."""
    noise, missing = _thinned(levels, scale, share, ctx.prec)
    own = [*noise[levels // 2 : 0 : -1], *noise]
    other = [*noise[levels - levels // 2 :], *[arb(0)] * levels]

    def at(epsilon: arb) -> arb:
        grown = epsilon.exp()
        told = sum((positive(p - grown * q) for p, q in zip(own, other, strict=True)), missing)
        return told + (1 + grown) * off

    # The smallest sum is where the event's probability is what is off: float looks for it.
    level, flat = float(off), epsilon
    for p, q in sorted(((float(p), float(q)) for p, q in zip(own, other, strict=True)), key=_falling):
        level -= q
        if level < 0.0:
            flat = arb(math.log(max(p / q, 1.0)))
            break
    return at(epsilon).min(at(flat)) if flat < epsilon else at(epsilon)


def _falling(masses: tuple[float, float]) -> float:
    return -masses[0] / masses[1] if masses[1] > 0.0 else -math.inf


@lru_cache(maxsize=4)
def _thinned(levels: int, scale: float, share: tuple[int, int], bits: int) -> tuple[list[arb], arb]:
    """Pr[Z = k] for k = 0, 1, ... at least, Z = G - G', both negative binomial (T18); and what is cut off:
    either of G and G' beyond the last, as their masses fall by e^(-1/scale) or more."""
    size = levels + math.ceil(_DEPTH * scale)
    if size > _MOST_OUTCOMES:
        raise NoCertificateError(f"noise of {size} outcomes: at most {_MOST_OUTCOMES} are verified")
    a, r = (-1 / arb(scale)).exp(), arb(share[0]) / share[1]
    law = [(1 - a) ** r]
    for j in range(1, size):
        law.append(law[-1] * a * (j - 1 + r) / j)
    product = arb_poly(law) * arb_poly(law[::-1])
    return [product[size - 1 + k] for k in range(size)], 2 * law[-1] * a / (1 - a)


def noisy_vectors(shift: arb, off: arb, epsilon: arb) -> arb:
    """T22: the curve of Gaussian noise for a move of ``shift`` deviations, and (1 + alpha) ``off``: at this
    epsilon or a smaller one."""

    def below(x: arb) -> arb:
        return (-x / arb(2).sqrt()).erfc() / 2

    def at(epsilon: arb) -> arb:
        half, away, grown = shift / 2, epsilon / shift, epsilon.exp()
        return positive(below(half - away) - grown * below(-half - away)) + (1 + grown) * off

    # The smallest sum is where the probability of the event is what is off: float looks for it.
    level = float(off)
    far = NormalDist().inv_cdf(level) if 1e-300 < level < 1.0 else 0.0
    flat = arb(max(-float(shift) * (far + 0.5 * float(shift)), 0.0))
    return at(epsilon).min(at(flat)) if far < 0.0 and flat <= epsilon else at(epsilon)


def gaussian_shares(variance: arb, people: int) -> arb:
    """tau_n + tau of T22: how far a sum of discrete Gaussian shares is from rounded Gaussian noise."""
    first, others = _rho(variance / 2), _rho(2 * variance / 3)
    if not first < 1:
        return arb(1)
    return (2 * first + max(people - 2, 0) * others) / (1 - first)


def _rho(u: arb) -> arb:
    falling = (-2 * arb.pi() ** 2 * u).exp()
    return 2 * falling / (1 - falling**3)


@lru_cache(maxsize=64)
def mixing(n: int, messages: int, modulus: int) -> arb:
    """How far n people's shuffled shares are from shares that depend on the sum alone: T17."""
    if n == 1 or modulus == 1:
        return arb(0)
    if messages < _FEWEST_MESSAGES:
        return arb(1)
    excess, settled = _small(min(n, _MOST_SIZES), messages, modulus)
    if n <= len(excess):
        found = excess[n - 1]
    elif settled is None:
        return arb(1)
    else:
        found = _large(n, messages, modulus, excess, settled)
    return (found.sqrt() / 2).min(arb(1))


def _small(most: int, m: int, q: int) -> tuple[list[arb], int | None]:
    """A_j - 1 for j = 1, 2, ..., and the first size from which on A_j <= 2 is proved."""
    excess = [arb(0)]
    for size in range(2, most + 1):
        terms = [_t(size, m, j) * (q - 1) * (1 + excess[j - 1]) for j in range(1, size)]
        excess.append(sum(terms, arb(0)))
        quarter = size // 4
        known = size % 4 == 0 and all(one <= 1 for one in excess[quarter - 1 :])
        if known and _large(size, m, q, excess, quarter) <= 1:
            return excess, quarter
    return excess, None


def _large(n: int, m: int, q: int, excess: list[arb], settled: int) -> arb:
    """The sum for n >= 4 ``settled``, given A_j <= 2 from ``settled`` on: its ends, and all between."""
    edge = 2 * settled
    near = [(_t(n, m, j), 1 + excess[j - 1] if j < settled else arb(2)) for j in range(1, edge + 1)]
    far = [(_t(n, m, n - i), arb(2)) for i in range(1, edge + 1)]
    middle = n * _choose(n, edge) ** 2 / _choose(n * m, edge * m)
    return (q - 1) * (sum((t * a for t, a in [*near, *far]), arb(0)) + 2 * middle)


def _t(n: int, m: int, j: int) -> arb:
    """C(n - 1, j) C(n, j) / C(n m, j m)."""
    return _choose(n - 1, j) * _choose(n, j) / _choose(n * m, j * m)


def _choose(n: int, k: int) -> arb:
    return arb.bin_uiui(n, min(k, n - k)) if 0 <= k <= n else arb(0)
