"""Closed forms of the literature for one shuffled round of n users, each with its stated range.

Upper bounds for substitution neighbours; the adversary knows everybody else's data and sees the
shuffled reports. With E = e^epsilon0, a = e^epsilon, s = E - 1/E:

| name               | theorem                             | range                                     |
|--------------------|-------------------------------------|-------------------------------------------|
| erlingsson_2019    | Erlingsson et al. 2019, as stated in| epsilon0 < 1/2, n >= 1000, delta < 1/100  |
|                    | Balle et al. 2019, Theorem 5.1      |                                           |
| balle_2019_krr     | Balle et al. 2019, Theorem 3.1      | epsilon <= 1, n >= 2; k-ary randomized    |
|                    |                                     | response only                             |
| balle_2019_generic | Balle et al. 2019, Theorem 5.3      | epsilon > 0                               |
| feldman_2021       | Feldman, McMillan, Talwar 2021      | epsilon0 <= log(n/(16 log(2/delta)))      |
| feldman_2022       | Feldman, McMillan, Talwar 2022      | epsilon0 <= log(n/(8 log(2/delta)) - 1)   |

    erlingsson_2019:     epsilon = 12 epsilon0 sqrt(log(1/delta)/n)
    balle_2019_krr:      gamma >= max(14 k log(2/delta)/((n-1) epsilon^2), 27 k/((n-1) epsilon)) implies DP
    balle_2019_generic:  delta = (a+1)^2 s^2/(4 n (a-1)) exp(-(1 - e^-2) n min(1/E, (a-1)^2/((a+1)^2 s^2)))
                         (its rate, Corollary 5.3.1: epsilon = O(min(1, epsilon0) E sqrt(log(1/delta)/n)))
    feldman_2021:        epsilon = log(1 + (E-1)/(E+1) (8 sqrt(E log(4/delta)/n) + 8 E/n))
    feldman_2022:        epsilon = log(1 + (E-1) (4 sqrt(2 log(4/delta)/((E+1) n)) + 4/n))

(Their authors' erratum restricts Theorems 3.1 and 3.2 of 2022; for one common randomizer they hold by T2.)

Outside its range a bound raises OutsideRangeError, which says the condition that fails;
``usable(bound)`` answers epsilon0 there, which always holds.

>>> round(feldman_2022_epsilon(epsilon0=2.0, n=10**6, delta=1e-10), 6)
0.059852
>>> usable(feldman_2022_epsilon)(epsilon0=2.0, n=50, delta=1e-10)
2.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shuffledp import _validate
from shuffledp._certified.rounding import CALL, LARGEST_EXPONENT, capped, down, gamma as units, up
from shuffledp.errors import OutsideRangeError
from shuffledp.facts import response_probabilities
from shuffledp.literature._solve import smallest_below

_OPERATIONS = 32  # soundness: no form, and no exponent of one, costs more (CALL is 8)


def _require(holds: bool, condition: str, values: str) -> None:
    if not holds:
        raise OutsideRangeError(f"the bound needs {condition}, got {values}")


def _checked(epsilon0: float, n: int) -> tuple[float, int]:
    return _validate.epsilon0(epsilon0), _validate.count("n", n)


def _level(delta: float) -> float:
    return _validate.probability("delta", delta, positive=True)


def usable(bound: Callable[..., float]) -> Callable[..., float]:
    """The same epsilon(..., epsilon0=...), but never above epsilon0, and epsilon0 outside the range.

    Every shuffled epsilon0-LDP randomizer is (epsilon0, 0)-DP by post-processing."""

    def answer(*, epsilon0: float, **parameters: Any) -> float:
        try:
            return min(epsilon0, bound(epsilon0=epsilon0, **parameters))
        except OutsideRangeError:
            return epsilon0

    return answer


def erlingsson_2019_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """epsilon at delta. Needs epsilon0 < 1/2, n >= 1000, delta < 1/100."""
    local, users = _checked(epsilon0, n)
    level = _level(delta)
    _require(local < 0.5, "epsilon0 < 1/2", f"{epsilon0=}")
    _require(users >= 1000, "n >= 1000", f"{n=}")
    _require(level < 0.01, "delta < 1/100", f"{delta=}")
    return up(12.0 * local * math.sqrt(-math.log(level) / users), _OPERATIONS, tiny=0.0)


def erlingsson_2019_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """delta at epsilon: exp(-n (epsilon/(12 epsilon0))^2).

    Needs epsilon0 < 1/2, n >= 1000, and the result below 1/100."""
    local, users = _checked(epsilon0, n)
    e = _validate.positive("epsilon", epsilon)
    _require(local < 0.5, "epsilon0 < 1/2", f"{epsilon0=}")
    _require(users >= 1000, "n >= 1000", f"{n=}")
    if local == 0.0:
        return 0.0
    ratio = e / (12.0 * local)
    delta = _decay(users * ratio * ratio)
    _require(delta < 0.01, "delta = exp(-n (epsilon/(12 epsilon0))^2) < 1/100", f"{delta=}")
    return delta


def balle_2019_krr_gamma(k: int, n: int, epsilon: float, delta: float) -> float:
    """The blanket mass gamma at which k-ary randomized response is (epsilon, delta)-DP. Needs it below 1."""
    symbols, users = _validate.count("k", k, least=2), _validate.count("n", n, least=2)
    level, e = _level(delta), _validate.positive("epsilon", epsilon)
    _require(e <= 1.0, "epsilon <= 1", f"{epsilon=}")
    share = symbols / (users - 1)
    gamma = up(max(14.0 * share * math.log(2.0 / level) / (e * e), 27.0 * share / e), _OPERATIONS)
    _require(gamma < 1.0, "gamma < 1", f"{gamma=} for {k=}, {n=}, {epsilon=}, {delta=}")
    return gamma


def _krr_share(epsilon0: float, k: int, n: int) -> float:
    """k/((n-1) gamma) = 1/((n-1) p), of k-ary randomized response."""
    symbols, users = _validate.count("k", k, least=2), _validate.count("n", n, least=2)
    p, _, _ = response_probabilities(symbols, _validate.epsilon0(epsilon0))
    return 1.0 / ((users - 1) * p)


def balle_2019_krr_epsilon(epsilon0: float, k: int, n: int, delta: float) -> float:
    """epsilon of k-ary randomized response at delta. Needs it at most 1, n >= 2."""
    share, level = _krr_share(epsilon0, k, n), _level(delta)
    epsilon = up(max(math.sqrt(14.0 * share * math.log(2.0 / level)), 27.0 * share), _OPERATIONS)
    _require(epsilon <= 1.0, "epsilon <= 1", f"{epsilon=} for {epsilon0=}, {k=}, {n=}, {delta=}")
    return epsilon


def balle_2019_krr_delta(epsilon0: float, k: int, n: int, epsilon: float) -> float:
    """delta of k-ary randomized response at epsilon: 2 exp(-gamma (n-1) epsilon^2/(14 k)), at most 1.

    Needs 27 k/((n-1) gamma) <= epsilon <= 1, n >= 2."""
    share, e = _krr_share(epsilon0, k, n), _validate.positive("epsilon", epsilon)
    _require(e <= 1.0, "epsilon <= 1", f"{epsilon=}")
    least = up(27.0 * share, _OPERATIONS)
    _require(e >= least, f"epsilon >= 27 k/((n-1) gamma) = {least!r}", f"{epsilon=}")
    return min(1.0, 2.0 * _decay(e * e / (14.0 * share)))


def balle_2019_generic_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """delta at epsilon > 0 of Theorem 5.3, at most 1."""
    return _generic_delta(*_checked(epsilon0, n), _validate.positive("epsilon", epsilon))


def _generic_delta(epsilon0: float, n: int, epsilon: float) -> float:
    if epsilon0 == 0.0:
        return 0.0
    # (a+1)/(a-1) = 1/tanh(epsilon/2) and E - 1/E = 2 sinh(epsilon0): no cancellation.
    ratio = math.tanh(0.5 * epsilon) / (2.0 * math.sinh(epsilon0))
    rate = -math.expm1(-2.0) * n * min(math.exp(-epsilon0), ratio * ratio)
    # Beyond epsilon0 every delta holds: growth may be capped.
    logs = math.log(math.expm1(capped(epsilon))), -math.log(4.0 * n), -2.0 * math.log(ratio)
    # Each logarithm is off by CALL units of its size and by 34 of one, from ratio squared.
    slack = units(CALL + 8) * sum(map(abs, logs)) + units(64)
    log_delta = min(0.0, sum(logs) - down(rate, 2 * _OPERATIONS) + slack)
    return min(1.0, up(math.exp(max(log_delta, -LARGEST_EXPONENT)), CALL, tiny=0.0))


def balle_2019_generic_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """epsilon at delta of Theorem 5.3, solved for numerically. Needs a solution below epsilon0."""
    local, users = _checked(epsilon0, n)
    level = _level(delta)
    if local == 0.0:
        return 0.0
    found = smallest_below(lambda e: _generic_delta(local, users, e), level, local)
    condition = "some epsilon <= epsilon0 that solves it"
    _require(math.isfinite(found), condition, f"{epsilon0=}, {n=}, {delta=}")
    return found


def feldman_2021_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """epsilon at delta. Needs epsilon0 <= log(n/(16 log(2/delta)))."""
    local, users = _checked(epsilon0, n)
    level = _level(delta)
    _require_2021(local, users, level)
    growth = math.exp(local)
    root = 8.0 * math.sqrt(growth * math.log(4.0 / level) / users)
    grown = math.tanh(0.5 * local) * (root + 8.0 * growth / users)
    return up(math.log1p(grown), _OPERATIONS, tiny=0.0)


def feldman_2021_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """delta at epsilon, the same formula solved for delta. Needs the range of the epsilon form."""
    local, users = _checked(epsilon0, n)
    e = _validate.positive("epsilon", epsilon)
    if local == 0.0:
        return 0.0
    gain, cost = math.expm1(capped(e)) / math.tanh(0.5 * local), 8.0 * math.exp(local) / users
    delta = _solved(gain, cost, 64.0 * math.exp(local) / users)
    _require_2021(local, users, delta)
    return delta


def feldman_2022_epsilon(epsilon0: float, n: int, delta: float) -> float:
    """epsilon at delta. Needs epsilon0 <= log(n/(8 log(2/delta)) - 1)."""
    local, users = _checked(epsilon0, n)
    level = _level(delta)
    _require_2022(local, users, level)
    root = 4.0 * math.sqrt(2.0 * math.log(4.0 / level) / ((math.exp(local) + 1.0) * users))
    return up(math.log1p(math.expm1(local) * (root + 4.0 / users)), _OPERATIONS, tiny=0.0)


def feldman_2022_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """delta at epsilon, the same formula solved for delta. Needs the range of the epsilon form."""
    local, users = _checked(epsilon0, n)
    e = _validate.positive("epsilon", epsilon)
    if local == 0.0:
        return 0.0
    gain, cost = math.expm1(capped(e)) / math.expm1(local), 4.0 / users
    delta = _solved(gain, cost, 32.0 / ((math.exp(local) + 1.0) * users))
    _require_2022(local, users, delta)
    return delta


def _require_2021(epsilon0: float, n: int, delta: float) -> None:
    least = up(16.0 * math.log(2.0 / delta) * math.exp(epsilon0), _OPERATIONS)
    _require(least <= n, "epsilon0 <= log(n/(16 log(2/delta)))", f"{epsilon0=}, {n=}, {delta=}")


def _require_2022(epsilon0: float, n: int, delta: float) -> None:
    least = up(8.0 * math.log(2.0 / delta) * (math.exp(epsilon0) + 1.0), _OPERATIONS)
    _require(least <= n, "epsilon0 <= log(n/(8 log(2/delta)) - 1)", f"{epsilon0=}, {n=}, {delta=}")


def _solved(gain: float, cost: float, scale: float) -> float:
    """4 exp(-root^2/scale), the delta with sqrt(scale log(4/delta)) = root = gain - cost; at most 1."""
    root = down(gain, _OPERATIONS) - up(cost, _OPERATIONS)
    if root <= 0.0:
        raise OutsideRangeError("the bound needs a larger epsilon: no delta in (0, 1] gives this one")
    delta = 4.0 * _decay(root * root / scale)
    _require(delta <= 1.0, "a larger epsilon: its delta is above 1", f"{delta=}")
    return delta


def _decay(rate: float) -> float:
    """exp(-rate), rounded up and never zero: the theorems give a positive delta."""
    return up(math.exp(-capped(down(rate, _OPERATIONS))), CALL, tiny=0.0)
