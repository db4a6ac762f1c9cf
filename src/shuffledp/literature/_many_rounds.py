"""The literature's bounds for repeated rounds and random cohorts.

A bound (epsilon1, delta1) of one round of the cohort becomes (log(1 + g (e^epsilon1 - 1)), g delta1)
for a cohort that is a share g of the population, and is composed by a theorem that knows only these
two numbers. Half of the total delta is spent on the rounds' own deltas.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from shuffledp.accounting._ends.upper import discretise
from shuffledp.literature import closed_forms as closed
from shuffledp.literature._case import Case
from shuffledp.literature._entry import Answer, Entry
from shuffledp.literature.closed_forms import usable
from shuffledp.literature.composition import (
    dwork_rothblum_vadhan_epsilon,
    kairouz_oh_viswanath_epsilon,
)
from shuffledp.literature.girgis import ORDERS, girgis_2021_epsilon, girgis_2021_upper
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi

_RENYI_ORDERS = tuple(1.0 + 0.1 * 1.25**i for i in range(40))
_RESOLUTION, _STRIDE = 5e-4, 4

OneRound = Callable[[Case, float], float]
Composition = Callable[[float, float, int, float], float]


def _composed(one_round: OneRound, compose: Composition) -> Answer:
    def epsilon(case: Case, delta: float) -> float:
        each = 0.5 * delta / (case.rounds * case.fraction)
        local = one_round(case, min(each, 1.0))
        # log(1 + g (e^local - 1)), rounded up.
        shrunk = math.log1p(case.fraction * math.expm1(min(local, 700.0))) * (1.0 + 1e-14)
        return compose(shrunk, case.fraction * each, case.rounds, delta)

    return epsilon


def _local(case: Case, delta: float) -> float:
    return case.epsilon0


def _closed_2021(case: Case, delta: float) -> float:
    return usable(closed.feldman_2021_epsilon)(epsilon0=case.epsilon0, n=case.n, delta=delta)


def _closed_2022(case: Case, delta: float) -> float:
    return usable(closed.feldman_2022_epsilon)(epsilon0=case.epsilon0, n=case.n, delta=delta)


def _numerical(case: Case, delta: float) -> float:
    return case.one_round("best").upper_epsilon(delta=delta)


def _girgis_epsilon(case: Case, delta: float) -> float:
    return girgis_2021_epsilon(case.epsilon0, case.n, case.population, case.rounds, delta)


def _girgis_delta(case: Case, epsilon: float) -> float:
    return min(
        delta_from_renyi(
            case.rounds * girgis_2021_upper(case.epsilon0, case.n, case.population, order),
            order,
            epsilon,
        )
        for order in ORDERS
    )


def _divergences(case: Case) -> list[tuple[float, float]]:
    """(order, divergence of all rounds) of a discrete pair that dominates the certified curve."""
    loss = discretise([(case.part.round, case.rounds)], 0.0, _RESOLUTION, _STRIDE).above
    if loss.infinity > 0.0:
        return []  # outcomes of infinite loss: no order has a finite divergence
    top = max(float(law.index[-1]) for law, _ in loss.parts) * loss.spacing
    # log E_P[e^{(L - 1) loss}] / (L - 1), up; its absolute error is that of masses that sum to one.
    return [
        (L, (loss.cumulants(L - 1.0)[0] * (1.0 + 1e-9) + 1e-13 * case.rounds * L) / (L - 1.0))
        for L in _RENYI_ORDERS
        if (L - 1.0) * top < 600.0
    ]


def _renyi_epsilon(case: Case, delta: float) -> float:
    found = _divergences(case)
    return min((epsilon_from_renyi(D, L, delta) for L, D in found), default=math.inf)


def _renyi_delta(case: Case, epsilon: float) -> float:
    return min((delta_from_renyi(D, L, epsilon) for L, D in _divergences(case)), default=1.0)


def _repeated(case: Case) -> bool:
    return not case.single


_KOV = "Kairouz, Oh, Viswanath 2015, Theorem 3.3"

ENTRIES = (
    Entry(
        "Renyi curve of the certified profile",
        "an integral of the profile; Canonne, Kamath, Steinke 2020, Proposition 12",
        _renyi_epsilon,
        _renyi_delta,
    ),
    Entry(
        "Girgis et al. 2021",
        "Girgis et al. 2021, Theorem 1; Canonne, Kamath, Steinke 2020",
        _girgis_epsilon,
        _girgis_delta,
        reason=f"best whole order from {ORDERS[0]} to {ORDERS[-1]}",
    ),
    Entry(
        "certified round, optimal composition",
        f"the certified profile at one point; {_KOV}",
        _composed(_numerical, kairouz_oh_viswanath_epsilon),
        None,
        _repeated,
    ),
    Entry(
        "Feldman et al. 2022, optimal composition",
        f"Feldman, McMillan, Talwar 2022, Theorem 3.2; {_KOV}",
        _composed(_closed_2022, kairouz_oh_viswanath_epsilon),
        None,
        _repeated,
    ),
    Entry(
        "Feldman et al. 2021, optimal composition",
        f"Feldman, McMillan, Talwar 2021, Theorem 3.1; {_KOV}",
        _composed(_closed_2021, kairouz_oh_viswanath_epsilon),
        None,
        _repeated,
    ),
    Entry(
        "no amplification, optimal composition",
        _KOV,
        _composed(_local, kairouz_oh_viswanath_epsilon),
        None,
        _repeated,
        reason="the local epsilon0 of every round",
    ),
    Entry(
        "no amplification, advanced composition",
        "Dwork, Rothblum, Vadhan 2010",
        _composed(_local, dwork_rothblum_vadhan_epsilon),
        None,
        _repeated,
        reason="the local epsilon0 of every round",
    ),
)
