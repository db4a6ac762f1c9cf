"""Formulas of the papers that are wrong or loose as printed, for crowds small enough to enumerate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shuffledp.literature._case import SOUND, UNSOUND, Answer, Case, Entry
from shuffledp.literature._solve import smallest_below
from shuffledp.literature.as_published.balle_2019 import bennett_krr_delta_as_published
from shuffledp.literature.as_published.biswas_2022 import one_bin_delta_as_published
from shuffledp.literature.as_published.koskela_2021 import clones_as_published
from shuffledp.literature.as_published.koskela_2023 import (
    specific_clones_as_published,
    strong_tail_as_published,
    strong_tail_joint_as_published,
)

_MOST_ENUMERATED = 1000  # speed: users; the tables have n^2 entries, and epsilon takes a search
_MOST_SUMMED = 100_000  # speed: users; one sum over them
_RELATIVE = 1e-4  # speed: how close to the crossing epsilon is searched


def _both(delta: Callable[..., float], of: Callable[[Case], tuple[Any, ...]]) -> tuple[Answer, Answer]:
    """epsilon(case, delta), solved for, and delta(case, epsilon) of a published delta(*of(case), epsilon)."""

    def solved(case: Case, level: float) -> float:
        return smallest_below(lambda e: delta(*of(case), e), level, case.epsilon0, _RELATIVE)

    return solved, lambda case, epsilon: delta(*of(case), epsilon)


def _generic(case: Case) -> tuple[float, int]:
    return case.epsilon0, case.n


def _response(case: Case) -> tuple[int, float, int]:
    return case.k, case.epsilon0, case.n


def _strong(case: Case) -> tuple[int, int, float]:
    return case.n, case.k, case.gamma


def _most_hold_x(case: Case) -> tuple[float, int, int, int]:
    return case.epsilon0, case.n, int(0.8 * case.n), case.k


def _small(case: Case) -> bool:
    return case.single and case.n <= _MOST_ENUMERATED


def _small_response(case: Case) -> bool:
    return _small(case) and case.k >= 2 and case.n >= 2


def _small_ternary(case: Case) -> bool:
    return _small_response(case) and case.k >= 3


def _long_response(case: Case) -> bool:
    return case.single and case.k >= 2 and case.n <= _MOST_SUMMED


ENTRIES = tuple(
    Entry(name, theorem, *_both(delta, of), applies, soundness, reason)
    for name, theorem, delta, of, applies, soundness, reason in (
        ("clones specific to k-RR",
         "Feldman, McMillan, Talwar 2022; Wang et al. 2024: p = 1/(e^epsilon0 + k - 1)",
         specific_clones_as_published, _response, _small_ternary, UNSOUND,
         "needs p = 1/(e^epsilon0 + 1) (erratum of 2022): a concrete dataset exceeds it for every k >= 3"),
        ("strong adversary, tail, independent counts", "Koskela et al. 2023, Theorem 13; 2021, Theorem 8",
         strong_tail_as_published, _strong, _small_response, UNSOUND,
         "the joint law is not stated; with independent counts no bound; a tail is not a hockey stick"),
        ("strong adversary, tail, joint counts",
         "Koskela et al. 2023, Theorem 13, read with the true joint law",
         strong_tail_joint_as_published, _strong, _small_response, SOUND,
         "a tail is above the hockey stick: never tight"),
        ("Bennett as printed", "Balle et al. 2019, Lemma 5.6",
         bennett_krr_delta_as_published, _response, _long_response, UNSOUND,
         "a factor 1/(a m) too much: it can fall below the truth"),
        ("one bin as printed", "Biswas et al. 2022, Theorem IV.1, 80% of the others hold x",
         one_bin_delta_as_published, _most_hold_x, _small_response, UNSOUND,
         "its loss v_s is wrong, and it looks at one bin of one dataset only"),
        ("2021 clones as transcribed", "Koskela et al. 2021, (5.1)-(5.2)",
         clones_as_published, _generic, _small, SOUND,
         "a looser pair than that of Feldman, McMillan, Talwar 2021"),
    )
)  # fmt: skip
