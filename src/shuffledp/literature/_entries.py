"""The sound bounds of the literature, each as a line of a comparison.

Theorems about one round in which everybody takes part come first. For repeated rounds and random
cohorts, a bound (epsilon1, delta1) of one round of the cohort becomes (log(1 + g (e^epsilon1 - 1)), g
delta1) for a cohort that is a share g of the population (Balle, Barthe, Gaboardi 2018), and is composed
by a theorem that knows only these two numbers. Half of the total delta is spent on the rounds' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from shuffledp._certified.rounding import CALL, additions, down, gamma, up
from shuffledp.accounting._ends.several_rounds import discretise
from shuffledp.accounting._rounds.loss import OUTWARD_UNITS
from shuffledp.accounting.mechanism import Mechanism
from shuffledp.literature import closed_forms as closed, concentration as blanket
from shuffledp.literature._case import Answer, Case, Entry
from shuffledp.literature.cohorts import koskela_2023_cohort
from shuffledp.literature.composition import dwork_rothblum_vadhan_epsilon, kairouz_oh_viswanath_epsilon
from shuffledp.literature.girgis import (
    ORDERS,
    girgis_2021_delta,
    girgis_2021_epsilon,
    girgis_2021_mixed_upper,
)
from shuffledp.literature.renyi import delta_from_renyi, epsilon_from_renyi

_RENYI_ORDERS = tuple(1.0 + 0.1 * 1.25**i for i in range(40))  # speed
_RESOLUTION, _STRIDE = 5e-4, 4  # speed: relative, of the discretised curve; points it skips
_MIXED_ORDERS = (*range(2, 17), *(round(17 * 1.2**i) for i in range(21)))  # speed
_MOST_MIXED = 10**6  # speed: users
_MOST_TILTED_LOSS = 600.0  # soundness: e to this power does not overflow

Bound = Callable[..., float]


def _both(bounds: tuple[Bound, Bound], of: Callable[[Case], tuple[Any, ...]]) -> tuple[Answer, Answer]:
    """The two answers of a theorem whose parameters, but for the last, are ``of(case)``."""
    epsilon, delta = bounds
    return (lambda case, level: epsilon(*of(case), level), lambda case, level: delta(*of(case), level))


def _generic(case: Case) -> tuple[float, int]:
    return case.epsilon0, case.n


def _response(case: Case) -> tuple[float, int, int]:
    return case.epsilon0, case.k, case.n


def _any_blanket(case: Case) -> tuple[blanket.Blanket, int]:
    return blanket.AnyBlanket(case.epsilon0), case.n


def _response_blanket(case: Case) -> tuple[blanket.Blanket, int]:
    return blanket.KaryBlanket(case.k, case.epsilon0), case.n


def _cohorts(case: Case) -> tuple[float, int, int, int]:
    return case.epsilon0, case.n, case.population, case.rounds


def _single(case: Case) -> bool:
    return case.single


def _single_response(case: Case) -> bool:
    return case.single and case.k >= 2 and case.n >= 2


def _repeated(case: Case) -> bool:
    return not case.single


def _repeated_response(case: Case) -> bool:
    return not case.single and case.k >= 2 and case.n >= 2


def _always(case: Case) -> bool:
    return True


def _composed(one_round: Answer, compose: Bound) -> Answer:
    def epsilon(case: Case, delta: float) -> float:
        each = 0.5 * delta / (case.rounds * case.fraction)
        local = one_round(case, min(each, 1.0))
        # log(1 + g (e^local - 1)); local is at most epsilon0, far from overflow.
        shrunk = up(math.log1p(case.fraction * math.expm1(local)), operations=2 * CALL + 2)
        return compose(shrunk, case.fraction * each, case.rounds, delta)

    return epsilon


def _closed(bound: Bound) -> Answer:
    return lambda case, delta: closed.usable(bound)(epsilon0=case.epsilon0, n=case.n, delta=delta)


def _theorem_3_1(case: Case, delta: float) -> float:
    return closed.usable(closed.balle_2019_krr_epsilon)(
        epsilon0=case.epsilon0, k=case.k, n=case.n, delta=delta
    )


def _local(case: Case, delta: float) -> float:
    return case.epsilon0


def _certified(case: Case, delta: float) -> float:
    return case.cohort.upper_epsilon(delta=delta)


def _published(case: Case) -> Mechanism:
    return case.rounds * koskela_2023_cohort(replace(case.part, analysis="best"))


def _divergences(case: Case) -> list[tuple[float, float]]:
    """(order, divergence of all rounds) of a discrete pair that dominates the certified curve."""
    loss = discretise([(case.part.round, case.rounds)], 0.0, _RESOLUTION, _STRIDE).above
    top, beyond = max(float(law.index[-1]) for law, _ in loss.parts) * loss.spacing, 0.0
    missing = up(math.fsum(count * law.infinity for law, count in loss.parts), operations=2, tiny=0.0)
    if missing > 0.0:
        # What lies beyond the last point: the chord from there to zero at the largest loss has this mass.
        last, top = top, case.part.round.profile.epsilon_max
        gap = down(top - last, operations=1, tiny=gamma(4) * last) if math.isfinite(top) else 0.0
        if gap <= 0.0 or missing > 0.5:
            return []  # outcomes of infinite loss: no order has a finite divergence
        beyond = up(missing / -math.expm1(-gap), operations=2 * CALL)
    found, terms = [], max(additions(law.index.size) for law, _ in loss.parts)
    for L in _RENYI_ORDERS:
        exponent = (L - 1.0) * top + 2.0 * L * missing
        if exponent < _MOST_TILTED_LOSS:
            # log E_P[e^{(L - 1) loss}], from above. Of one round, without what is missing, E is at least
            # (1 - missing)^L, and log(E + more) at most log E + more / E.
            # Of a round, log(1 + sum of masses times (e^x - 1)), whose terms are off by 4 (1 + x) units and a
            # call: by twice that of 1 + sum (masses of losses below zero count twice); and masses.
            units = OUTWARD_UNITS + 2.0 * (CALL + 4.0 * (1.0 + exponent) + terms)
            cumulant = loss.cumulants(L - 1.0)[0]
            cumulant += gamma(2 * CALL) * abs(cumulant) + case.rounds * gamma(units)
            cumulant += up(beyond * math.exp(exponent), 2 * CALL + 8.0 * exponent, tiny=0.0)
            found.append((L, cumulant / (L - 1.0)))
    return found


def _renyi_epsilon(case: Case, delta: float) -> float:
    found = _divergences(case)
    return min((epsilon_from_renyi(D, L, delta) for L, D in found), default=math.inf)


def _renyi_delta(case: Case, epsilon: float) -> float:
    return min((delta_from_renyi(D, L, epsilon) for L, D in _divergences(case)), default=1.0)


_HOEFFDING = blanket.hoeffding_epsilon, blanket.hoeffding_delta
_BENNETT = blanket.bennett_epsilon, blanket.bennett_delta
_BALLE, _FMT = "Balle et al. 2019, ", "Feldman, McMillan, Talwar "
_ONE_ROUND = tuple(
    Entry(name, theorem, *_both(bounds, of), applies, reason=reason)
    for name, theorem, bounds, of, applies, reason in (
        ("Feldman et al. 2022, closed form", _FMT + "2022, Theorem 3.2; T2",
         (closed.feldman_2022_epsilon, closed.feldman_2022_delta), _generic, _single, ""),
        ("Feldman et al. 2021, closed form", _FMT + "2021, Theorem 3.1",
         (closed.feldman_2021_epsilon, closed.feldman_2021_delta), _generic, _single, ""),
        ("Erlingsson et al. 2019", _BALLE + "Theorem 5.1",
         (closed.erlingsson_2019_epsilon, closed.erlingsson_2019_delta), _generic, _single, ""),
        ("Balle et al. 2019, randomized response", _BALLE + "Theorem 3.1",
         (closed.balle_2019_krr_epsilon, closed.balle_2019_krr_delta), _response, _single_response, ""),
        ("Balle et al. 2019, generic", _BALLE + "Theorem 5.3",
         (closed.balle_2019_generic_epsilon, closed.balle_2019_generic_delta), _generic, _single, ""),
        ("blanket, Hoeffding", _BALLE + "Lemmas 5.3 to 5.5, refined ranges",
         _HOEFFDING, _any_blanket, _single, "generic, the supremum over gamma"),
        ("blanket, Bennett", _BALLE + "Lemmas 5.3, 5.4, 5.6, corrected",
         _BENNETT, _any_blanket, _single, "generic, without the printed factor 1/(a m)"),
        ("blanket of randomized response, Hoeffding", _BALLE + "Lemmas 5.3, 5.5, 5.7",
         _HOEFFDING, _response_blanket, _single_response, ""),
        ("blanket of randomized response, Bennett", _BALLE + "Lemmas 5.3, 5.6, 5.7, corrected",
         _BENNETT, _response_blanket, _single_response, "without the printed factor 1/(a m)"),
    )
)  # fmt: skip

_MIXED: dict[str, Any] = {"orders": _MIXED_ORDERS, "divergence": girgis_2021_mixed_upper}
_KOV, _DRV = "Kairouz, Oh, Viswanath 2015, Theorem 3.3", "Dwork, Rothblum, Vadhan 2010"

_MANY_ROUNDS = (
    Entry(
        "Renyi curve of the certified profile",
        "an integral of the profile; Canonne, Kamath, Steinke 2020, Proposition 12",
        _renyi_epsilon,
        _renyi_delta,
        _always,
    ),
    Entry(
        "cohorts as published",
        "Koskela et al. 2023, Lemma 7, of the best analysis of the cohort",
        lambda case, delta: _published(case).upper_epsilon(delta=delta),
        lambda case, epsilon: float(_published(case).upper_delta(epsilon=epsilon)),
        lambda case: case.fraction < 1.0,
    ),
    Entry(
        "Girgis et al. 2021",
        "Girgis et al. 2021, Theorem 1 (Lemma 2 with Theorem 4); Canonne, Kamath, Steinke 2020",
        *_both((girgis_2021_epsilon, girgis_2021_delta), _cohorts),
        _always,
        reason=f"best whole order from {ORDERS[0]} to {ORDERS[-1]}",
    ),
    Entry(
        "Girgis et al. 2021, no Chernoff bound",
        "Girgis et al. 2021, Lemma 2 with Theorems 5 and 6 (Corollary 1, Lemma 7)",
        *_both((partial(girgis_2021_epsilon, **_MIXED), partial(girgis_2021_delta, **_MIXED)), _cohorts),
        lambda case: case.n <= _MOST_MIXED,
        reason=f"best whole order from {_MIXED_ORDERS[0]} to {_MIXED_ORDERS[-1]}",
    ),
    *(
        Entry(name, theorem, _composed(one_round, compose), None, applies, reason=reason)
        for name, theorem, one_round, compose, applies, reason in (
            ("certified round, optimal composition", "the certified profile at one point; " + _KOV,
             _certified, kairouz_oh_viswanath_epsilon, _repeated, ""),
            ("Feldman et al. 2022, optimal composition", f"{_FMT}2022, Theorem 3.2; T2; {_KOV}",
             _closed(closed.feldman_2022_epsilon), kairouz_oh_viswanath_epsilon, _repeated, ""),
            ("Feldman et al. 2021, optimal composition", f"{_FMT}2021, Theorem 3.1; {_KOV}",
             _closed(closed.feldman_2021_epsilon), kairouz_oh_viswanath_epsilon, _repeated, ""),
            ("Balle et al. 2019, advanced composition", f"{_BALLE}Theorem 3.1; {_DRV}",
             _theorem_3_1, dwork_rothblum_vadhan_epsilon, _repeated_response,
             "several messages about the same data (Koskela et al. 2021, Theorem 6) are rounds"),
            ("no amplification, optimal composition", _KOV,
             _local, kairouz_oh_viswanath_epsilon, _repeated, "the local epsilon0 of every round"),
            ("no amplification, advanced composition", _DRV,
             _local, dwork_rothblum_vadhan_epsilon, _repeated, "the local epsilon0 of every round"),
        )
    ),
)  # fmt: skip

ENTRIES = (*_ONE_ROUND, *_MANY_ROUNDS)
