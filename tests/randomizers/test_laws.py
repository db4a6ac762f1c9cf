"""The amplification law of every frequency randomizer, against all its reports in exact rationals."""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from oracles import brute, pairs
from oracles.claims import rational_exp
from oracles.hockey import hockey_stick
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.facts import AmplificationLaw
from shuffledp.randomizers.hadamard import HadamardResponse
from shuffledp.randomizers.hashing import OptimisedLocalHashing
from shuffledp.randomizers.kary import BinaryRandomizedResponse, KaryRandomizedResponse
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

SMALL = [
    KaryRandomizedResponse(k=2, epsilon0=0.3),
    KaryRandomizedResponse(k=4, epsilon0=2.0),
    KaryRandomizedResponse(k=3, epsilon0=0.0),
    BinaryRandomizedResponse(epsilon0=5.0),
    SymmetricUnaryEncoding(k=2, epsilon0=1.0),
    SymmetricUnaryEncoding(k=3, epsilon0=3.0),
    OptimisedUnaryEncoding(k=2, epsilon0=0.5),
    OptimisedUnaryEncoding(k=3, epsilon0=2.0),
    SubsetSelection(k=2, epsilon0=1.0),
    SubsetSelection(k=4, epsilon0=1.0, size=2),
    SubsetSelection(k=4, epsilon0=2.0, size=3),
    SubsetSelection(k=5, epsilon0=0.5, size=2),
    HadamardResponse(k=2, epsilon0=1.0),
    HadamardResponse(k=3, epsilon0=2.5),
    HadamardResponse(k=4, epsilon0=0.7),
    OptimisedLocalHashing(k=2, epsilon0=1.0, symbols=2),
    OptimisedLocalHashing(k=3, epsilon0=1.0, symbols=2),
    OptimisedLocalHashing(k=3, epsilon0=1.5, symbols=3),
    OptimisedLocalHashing(k=4, epsilon0=0.4, symbols=2),
]
LARGER = [
    KaryRandomizedResponse(k=9, epsilon0=36.0),
    KaryRandomizedResponse(k=5, epsilon0=1e-17),
    SymmetricUnaryEncoding(k=7, epsilon0=0.1),
    OptimisedUnaryEncoding(k=6, epsilon0=8.0),
    SubsetSelection(k=9, epsilon0=1.0),
    SubsetSelection(k=8, epsilon0=1e-6, size=7),
    HadamardResponse(k=16, epsilon0=1.0),
    HadamardResponse(k=9, epsilon0=20.0),
    OptimisedLocalHashing(k=5, epsilon0=2.0, symbols=3),
    OptimisedLocalHashing(k=12, epsilon0=1.3),
    OptimisedLocalHashing(k=4, epsilon0=4.0, symbols=7),
]
ALPHAS = [Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(6, 5), Fraction(2), Fraction(7)]


def name(randomizer: Any) -> str:
    return repr(randomizer)


def ball(fraction: Fraction | float) -> arb:
    fraction = Fraction(fraction)
    return arb(fmpq(fraction.numerator, fraction.denominator))


@pytest.mark.parametrize("randomizer", SMALL + LARGER, ids=name)
def test_every_ordered_pair_of_inputs_has_the_stated_law(randomizer: Any, known: Callable[..., Any]) -> None:
    all_reports, law = known(randomizer), randomizer.law()
    stated = sorted(zip(law.own, law.other, law.clone, law.gap, strict=True))
    for x, other in permutations(range(randomizer.k), 2):
        types = all_reports.types(x, other)
        exact = sorted((float(u), float(v), float(c), float(u - v)) for u, v, c in types)
        assert stated == exact


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_the_law_covers_every_dataset_of_two_and_three_users(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    all_reports = known(randomizer)
    types = all_reports.types(0, 1)
    outputs = len(all_reports.matrix[0])
    for n in (2, 3) if outputs <= 8 else (2,):
        truth = brute.shuffled_pairs(all_reports.matrix, n)
        stated = pairs.counting(n, *zip(*types, strict=True))
        for alpha in ALPHAS:
            assert brute.worst(truth, alpha) <= hockey_stick(stated, alpha)


@pytest.mark.parametrize("randomizer", SMALL + LARGER, ids=name)
def test_the_law_is_at_least_as_tight_as_the_clones_of_equal_epsilon0(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    all_reports = known(randomizer)
    types = all_reports.types(0, 1)
    for n in (2, 3):
        stated, generic = (pairs.counting(n, *zip(*types, strict=True)), pairs.clones(n, all_reports.ratio))
        for alpha in ALPHAS:
            assert hockey_stick(stated, alpha) <= hockey_stick(generic, alpha)


@pytest.mark.parametrize("randomizer", SMALL, ids=name)
def test_the_profile_of_the_law_encloses_the_enumerated_pair(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    law, types = randomizer.law(), known(randomizer).types(0, 1)
    profile = AmplificationProfile(3, law.own, law.other, law.gap, law.clone)
    for epsilon in (0.0, 0.1, 0.4):
        exact = hockey_stick(pairs.counting(3, *zip(*types, strict=True)), rational_exp(epsilon))
        upper = float(profile.upper(np.array([epsilon]), 1e-3)[0])
        assert float(exact) * (1 - 1e-12) <= upper <= float(exact) * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize("randomizer", SMALL + LARGER, ids=name)
def test_the_realised_epsilon0_is_tight_and_at_most_what_was_asked(
    randomizer: Any, known: Callable[..., Any]
) -> None:
    ratio = known(randomizer).ratio
    stated = getattr(randomizer, "realised_epsilon0", randomizer.epsilon0)
    assert ball(ratio) <= ball(randomizer.epsilon0).exp()
    if ratio == 1:
        assert stated == 0.0
        return
    assert ball(ratio).log() <= ball(stated)
    assert ball(stated) <= ball(ratio).log() * (1 + ball(Fraction(2, 10**15)))


@pytest.mark.parametrize("randomizer", SMALL + LARGER, ids=name)
def test_the_total_variation_is_that_of_the_reports(randomizer: Any, known: Callable[..., Any]) -> None:
    matrix = known(randomizer).matrix
    exact = max(
        sum(max(u - v, Fraction(0)) for u, v in zip(row, other, strict=True))
        for row, other in permutations(matrix, 2)
    )
    assert randomizer.total_variation == pytest.approx(float(exact), rel=1e-12, abs=1e-16)
    if not isinstance(randomizer, KaryRandomizedResponse):  # there it is that of the asked epsilon0
        assert exact <= Fraction(randomizer.total_variation)


def test_beyond_64_categories_the_report_of_all_ones_counts_as_not_hidden() -> None:
    short, long = (OptimisedUnaryEncoding(k=k, epsilon0=1.0).law() for k in (64, 65))
    assert sum(long.clone) <= sum(short.clone)
    assert sum(long.clone) == pytest.approx(sum(short.clone), rel=1e-15)
    assert long.own == pytest.approx(short.own, rel=1e-15)


@pytest.mark.parametrize(
    "randomizer",
    [
        SymmetricUnaryEncoding(k=2**24, epsilon0=1.0),
        OptimisedUnaryEncoding(k=10**6, epsilon0=4.0),
        SubsetSelection(k=10**6, epsilon0=4.0),
        HadamardResponse(k=10**6, epsilon0=4.0),
        OptimisedLocalHashing(k=10**6, epsilon0=4.0),
        KaryRandomizedResponse(k=2**40, epsilon0=4.0),
    ],
    ids=name,
)
def test_laws_of_many_categories_are_probabilities(randomizer: Any) -> None:
    law = randomizer.law()
    assert sum(law.own) == pytest.approx(1.0, abs=1e-12)
    assert sum(law.other) == pytest.approx(1.0, abs=1e-12)
    assert all(c <= min(u, v) * (1 + 1e-15) for u, v, c in zip(law.own, law.other, law.clone, strict=True))
    assert 0.0 < law.gamma <= 1.0


def test_laws_need_one_entry_per_type() -> None:
    with pytest.raises(ValueError, match="one entry per type"):
        AmplificationLaw(own=(1.0,), other=(0.5, 0.5), clone=(0.1,))
    with pytest.raises(ValueError, match="one entry per type"):
        AmplificationLaw(own=(), other=(), clone=())


def test_the_gap_of_a_law_is_the_difference_unless_it_is_known_better() -> None:
    assert AmplificationLaw((0.75, 0.25), (0.25, 0.75), (0.25, 0.25)).gap == (0.5, -0.5)
    tiny = Fraction(1, 2**60)
    exact = AmplificationLaw.merged([(1 - tiny, 1 - 2 * tiny, 0 * tiny), (tiny, 2 * tiny, 0 * tiny)])
    assert exact.gap == (2.0**-60, -(2.0**-60))
