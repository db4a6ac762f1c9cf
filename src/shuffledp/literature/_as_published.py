"""Formulas of the papers that are wrong or loose as printed, for crowds small enough to enumerate."""

from __future__ import annotations

from collections.abc import Callable

from shuffledp.literature._case import Case
from shuffledp.literature._entry import SOUND, UNSOUND, Answer, Entry
from shuffledp.literature._solve import smallest_below
from shuffledp.papers.balle_2019.as_published import bennett_krr_delta_as_published
from shuffledp.papers.biswas_2022.as_published import one_bin_delta_as_published
from shuffledp.papers.koskela_2021.as_published import clones_as_published
from shuffledp.papers.koskela_2023.as_published import (
    specific_clones_as_published,
    strong_tail_as_published,
    strong_tail_joint_as_published,
)

_ENUMERATED = 1000
"""Their tables have n^2 entries, and epsilon takes a search."""
_LONG_SUM = 100_000
_RELATIVE = 1e-4


def _small_kary(case: Case) -> bool:
    return case.single and case.kary is not None and 2 <= case.n <= _ENUMERATED


def _small_ternary(case: Case) -> bool:
    return _small_kary(case) and case.randomizer.k >= 3


def _small(case: Case) -> bool:
    return case.single and case.n <= _ENUMERATED


def _long_kary(case: Case) -> bool:
    return case.single and case.kary is not None and case.n <= _LONG_SUM


def _solved(delta: Answer) -> Answer:
    """epsilon(delta) of a published delta(epsilon)."""

    def epsilon(case: Case, level: float) -> float:
        return smallest_below(lambda e: delta(case, e), level, case.epsilon0, _RELATIVE)

    return epsilon


def _strong(bound: Callable[..., float]) -> Answer:
    return lambda case, epsilon: bound(case.n, case.randomizer.k, case.randomizer.gamma, epsilon)


def _specific(case: Case, epsilon: float) -> float:
    return specific_clones_as_published(case.randomizer.k, case.epsilon0, case.n, epsilon)


def _bennett(case: Case, epsilon: float) -> float:
    return bennett_krr_delta_as_published(case.randomizer.k, case.epsilon0, case.n, epsilon)


def _one_bin(case: Case, epsilon: float) -> float:
    return one_bin_delta_as_published(
        case.epsilon0, case.n, int(0.8 * case.n), case.randomizer.k, epsilon
    )


def _clones_2021(case: Case, epsilon: float) -> float:
    return clones_as_published(case.epsilon0, case.n, epsilon)


ENTRIES = (
    Entry(
        "k-RR specific clones",
        "Koskela et al. 2023, (3.1)-(3.2) with p = 1/(e^epsilon0 + k - 1)",
        _solved(_specific),
        _specific,
        _small_ternary,
        UNSOUND,
        "needs p = 1/(e^epsilon0 + 1): a concrete dataset exceeds it for every k >= 3",
    ),
    Entry(
        "strong adversary, tail, independent counts",
        "Koskela et al. 2023, Theorem 13; 2021, Theorem 8",
        _solved(_strong(strong_tail_as_published)),
        _strong(strong_tail_as_published),
        _small_kary,
        UNSOUND,
        "the two counts are not independent; a tail is not a hockey stick",
    ),
    Entry(
        "strong adversary, tail, joint counts",
        "Koskela et al. 2023, Theorem 13, read with the true joint law",
        _solved(_strong(strong_tail_joint_as_published)),
        _strong(strong_tail_joint_as_published),
        _small_kary,
        SOUND,
        "a tail is above the hockey stick: never tight",
    ),
    Entry(
        "Bennett as printed",
        "Balle et al. 2019, Lemma 5.6",
        _solved(_bennett),
        _bennett,
        _long_kary,
        UNSOUND,
        "a factor 1/(a m) too much: it can fall below the truth",
    ),
    Entry(
        "one bin as printed",
        "Biswas et al. 2022, Theorem IV.1, 80% of the others hold x",
        _solved(_one_bin),
        _one_bin,
        _small_kary,
        UNSOUND,
        "its loss v_s is wrong, and it looks at one bin of one dataset only",
    ),
    Entry(
        "2021 clones as transcribed",
        "Koskela et al. 2021, (5.1)-(5.2)",
        _solved(_clones_2021),
        _clones_2021,
        _small,
        SOUND,
        "a looser pair than that of Feldman, McMillan, Talwar 2021",
    ),
)
