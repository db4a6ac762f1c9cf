"""The literature's bounds for one round in which everybody takes part."""

from __future__ import annotations

from collections.abc import Callable

from shuffledp.literature import closed_forms as closed
from shuffledp.literature._case import Case
from shuffledp.literature._entry import Answer, Entry
from shuffledp.literature.concentration import (
    AnyBlanket,
    Blanket,
    KaryBlanket,
    bennett_delta,
    bennett_epsilon,
    hoeffding_delta,
    hoeffding_epsilon,
)


def _generic(bound: Callable[[float, int, float], float]) -> Answer:
    return lambda case, level: bound(case.epsilon0, case.n, level)


def _kary(bound: Callable[[float, int, int, float], float]) -> Answer:
    return lambda case, level: bound(case.epsilon0, case.randomizer.k, case.n, level)


def _any_blanket(case: Case) -> Blanket:
    return AnyBlanket(case.epsilon0)


def _kary_blanket(case: Case) -> Blanket:
    return KaryBlanket(case.randomizer.k, case.epsilon0)


def _concentration(
    bound: Callable[[Blanket, int, float], float], blanket: Callable[[Case], Blanket]
) -> Answer:
    return lambda case, level: bound(blanket(case), case.n, level)


def _single(case: Case) -> bool:
    return case.single


def _single_kary(case: Case) -> bool:
    return case.single and case.kary is not None and case.n >= 2


ENTRIES = (
    Entry(
        "Feldman et al. 2022, closed form",
        "Feldman, McMillan, Talwar 2022, Theorem 3.2",
        _generic(closed.feldman_2022_epsilon),
        _generic(closed.feldman_2022_delta),
        _single,
    ),
    Entry(
        "Feldman et al. 2021, closed form",
        "Feldman, McMillan, Talwar 2021, Theorem 3.1",
        _generic(closed.feldman_2021_epsilon),
        _generic(closed.feldman_2021_delta),
        _single,
    ),
    Entry(
        "Erlingsson et al. 2019",
        "Balle et al. 2019, Theorem 5.1",
        _generic(closed.erlingsson_2019_epsilon),
        _generic(closed.erlingsson_2019_delta),
        _single,
    ),
    Entry(
        "Balle et al. 2019, randomized response",
        "Balle et al. 2019, Theorem 3.1",
        _kary(closed.balle_2019_krr_epsilon),
        _kary(closed.balle_2019_krr_delta),
        _single_kary,
    ),
    Entry(
        "Balle et al. 2019, generic",
        "Balle et al. 2019, Theorem 5.3",
        _generic(closed.balle_2019_generic_epsilon),
        _generic(closed.balle_2019_generic_delta),
        _single,
    ),
    Entry(
        "blanket, Hoeffding",
        "Balle et al. 2019, Lemmas 5.3 to 5.5, refined ranges",
        _concentration(hoeffding_epsilon, _any_blanket),
        _concentration(hoeffding_delta, _any_blanket),
        _single,
        reason="generic, the supremum over gamma",
    ),
    Entry(
        "blanket, Bennett",
        "Balle et al. 2019, Lemmas 5.3, 5.4, 5.6, corrected",
        _concentration(bennett_epsilon, _any_blanket),
        _concentration(bennett_delta, _any_blanket),
        _single,
        reason="generic, without the printed factor 1/(a m)",
    ),
    Entry(
        "blanket of randomized response, Hoeffding",
        "Balle et al. 2019, Lemmas 5.3, 5.5, 5.7",
        _concentration(hoeffding_epsilon, _kary_blanket),
        _concentration(hoeffding_delta, _kary_blanket),
        _single_kary,
    ),
    Entry(
        "blanket of randomized response, Bennett",
        "Balle et al. 2019, Lemmas 5.3, 5.6, 5.7, corrected",
        _concentration(bennett_epsilon, _kary_blanket),
        _concentration(bennett_delta, _kary_blanket),
        _single_kary,
        reason="without the printed factor 1/(a m)",
    ),
)
