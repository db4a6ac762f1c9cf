"""Questions asked of each part of the kernel itself, so that no rounding hides behind a larger one (T8).

An answer is a row of ends, lower and upper ones by turns; a bound from one side has 0 as its other end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from typing import Any

import numpy as np

from response import krr_blanket
from shuffledp._certified import (
    binomial,
    caps,
    frequencies,
    gaussian_shares,
    hypergeometric,
    lattice_sum,
    mixing,
    signs,
)
from shuffledp._certified.lattice_sum import Group, Own
from shuffledp._certified.rounding import Floats
from shuffledp._certified.two_binomials import Ridge, TwoBinomials
from shuffledp._spans.span import Span
from shuffledp.accounting._curves import (
    approximate,
    blanket,
    clones,
    crowd,
    crowd_family,
    crowd_inside,
    crowd_moments,
    jumps,
    lattice_law,
    law_sum,
    many_laws,
)
from shuffledp.accounting._curves.binary_cohort import BinaryCohortProfile
from shuffledp.accounting._curves.cohort_pair import CohortPair, ReversedCohortPair
from shuffledp.accounting._curves.crowd_at_once import AtOnce
from shuffledp.accounting._curves.crowd_laws import Laws, Taking
from shuffledp.accounting._curves.crowd_near import Nearby
from shuffledp.accounting._curves.crowd_weights import Corners, Cut, Scales, expectation
from shuffledp.accounting._curves.exact_binary import BinaryAmongProfile, ExactBinaryProfile
from shuffledp.accounting._curves.foreign_loss import KnownLossProfile, LossLaw
from shuffledp.accounting._curves.gaussian_sum import GaussianSumProfile
from shuffledp.accounting._curves.groups import GroupPairsProfile, GroupsProfile
from shuffledp.accounting._curves.inexact import InexactProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.many_laws import ManyLaws
from shuffledp.accounting._curves.mixture import MixtureProfile
from shuffledp.accounting._curves.noisy_sum import NoisySumProfile
from shuffledp.accounting._curves.profile import PrivacyProfile, SupportingLines
from shuffledp.accounting._curves.stop_loss import LawOrder
from shuffledp.accounting._curves.subsampled import SubsampledProfile, in_cohort, polled
from shuffledp.accounting._curves.thinned_sum import ThinnedSumProfile
from shuffledp.accounting._curves.third_value import EvenCrowdProfile
from shuffledp.accounting._ends import lower, several_rounds, upper
from shuffledp.accounting._ends.moments import THETAS, LogMoments
from shuffledp.accounting._hints.crowds import CrowdHints
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._hints.tilt import Tilts
from shuffledp.accounting._rounds import loss
from shuffledp.accounting._rounds.compose import ComposedLoss
from shuffledp.accounting._rounds.loss import LossDistribution, Samples
from shuffledp.accounting._rounds.round import Round
from shuffledp.errors import NoCertificateError
from shuffledp.facts import Matrix

Ends = tuple[float, ...]
UNEVEN = np.array([[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]])


def ends(*pairs: tuple[Any, Any]) -> Ends:
    """Rows of lower and of upper ends, by turns."""
    sides = [np.broadcast_arrays(*np.atleast_1d(*pair)) for pair in pairs]
    return tuple(
        float(x) for low, high in sides for pair in zip(low.flat, high.flat, strict=True) for x in pair
    )


def above(*bounds: Any) -> Ends:
    return ends(*((0.0, bound) for bound in bounds))


def around(value: Any, error: Any) -> Ends:
    return ends((np.asarray(value) - error, np.asarray(value) + error))


def curve(profile: Any, *epsilon: float, resolution: float = 0.01) -> Ends:
    """All that a curve says."""
    at = np.array(epsilon)
    lines, high = profile.support(at, resolution), profile.upper(at, resolution)
    together, also = profile.both(at, resolution)
    most = profile.epsilon_max
    return ends(
        (lines.value, high),
        (lines.slope_low, lines.slope_high),
        (also.value, together),
        (also.slope_low, also.slope_high),
        (profile.infinite_loss, most if most < math.inf else 0.0),
    )


def law(n: int, own: list[float], other: list[float], clone: list[float]) -> AmplificationProfile:
    gap = tuple((np.array(own) - np.array(other)).tolist())
    return AmplificationProfile(n, tuple(own), tuple(other), gap, tuple(clone))


def curves() -> dict[str, tuple[Any, ...]]:
    """Curves, and the epsilons that they are asked at."""
    few, many = krr_blanket(3, 1.0, 12), krr_blanket(5, 2.0, 300)
    seen = law(5, [0.5, 0.3, 0.2, 0.0], [0.5, 0.2, 0.0, 0.3], [0.2, 0.1, 0.05, 0.0])
    strong, published = clones.strong_clones(1.0, 300), clones.clones_2021(1.0, 300)
    sure = clones.strong_adversary(3, 0.6, 0.4, 40)
    even = EvenCrowdProfile(200, 0.9, 0.5, 0.2, 0.1, 0.4, 0.6)
    rising = approximate.strong_approximate(strong, 1e-5, 300)
    vars(rising)["lowest"] = 0.3  # any is valid
    losses = LossLaw(np.array([0.0, 0.5, 1.0]), np.array([0.5, 0.3, 0.19]), 0.01)
    near = {
        f"{name}, {how}": (curve_of(off), *at)
        for name, curve_of, at in (
            ("noisy sum", lambda off: NoisySumProfile(10, 5.0, off), (0.2, 1.0, 3.0)),
            ("Gaussian sum", lambda off: GaussianSumProfile(0.5, off), (0.1, 1.0, 19.0)),
        )
        for how, off in (("as it is", 0.0), ("above", 0.01), ("below", -0.01))
    }
    return {
        "few users": (few, 0.1, 0.5),
        "some users": (krr_blanket(3, 1.0, 120), 0.1),
        "many users": (many, 0.05, 0.3),
        "seen types": (seen, 0.1, 1.0),
        "seen types of many": (law(500, [0.5, 0.3, 0.2], [0.5, 0.49, 0.01], [0.3, 0.3, 0.0]), 0.05),
        "seen for certain": (law(50, [0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [0.3, 0.3, 0.0]), 0.05),
        "one odd report": (law(1000, [0.98, 1e-6, 0.02], [1e-6, 0.98, 0.02], [1e-6, 1e-6, 0.999998]), 13.5),
        "nobody else": (law(1, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.2, 0.3, 0.2]), 0.1),
        "strong clones": (strong, 0.05, 0.99),
        "few clones": (clones.strong_clones(1.0, 5), 0.3, 0.999),
        "strong adversary": (sure, 0.2, 3.0),
        "even crowd": (even, 0.05, 0.5, 1.2),
        "even crowd, alone": (EvenCrowdProfile(3, 0.9, 0.5, 0.2, 0.1, 0.4, 0.6), 0.05, 1.0),
        "groups": (
            GroupsProfile((0.6, 0.4), (0.4, 0.6), (0.2, -0.2), ((0.4, 0.4), (0.2, 0.2)), (50, 60)),
            0.02,
        ),
        "group of one": (GroupsProfile((0.6, 0.4), (0.4, 0.6), (0.2, -0.2), ((0.4, 0.4),), (0,)), 0.02),
        "pairs in groups": (
            GroupPairsProfile(
                (
                    GroupsProfile((0.6, 0.4), (0.4, 0.6), (0.2, -0.2), ((0.4, 0.4), (0.2, 0.2)), (50, 60)),
                    GroupsProfile((0.5, 0.5), (0.4, 0.6), (0.1, -0.1), ((0.4, 0.4), (0.2, 0.2)), (50, 60)),
                )
            ),
            0.02,
        ),
        **near,
        "thinned sum": (ThinnedSumProfile(3, 2.0, 0.9, -0.1), 0.1, 1.0),
        "inexact": (InexactProfile(many, 1e-9), 0.05, 0.3),
        "inexact, even": (InexactProfile(even, 1e-9), 0.05),
        "inexact, hardly anything": (InexactProfile(even, 1e-9), 1.078),
        "inexact, nothing": (InexactProfile(few, 1e-3), 0.9),
        "approximate": (approximate.strong_approximate(strong, 1e-8, 300), 0.05, 0.9),
        "approximate, 2021": (approximate.plain_approximate(published, 1e-8, 300), 0.05, 0.9),
        "approximate, cohort": (in_cohort(approximate.strong_approximate(strong, 1e-8, 300), 0.1), 0.01),
        "approximate, coins": (polled(approximate.strong_approximate(strong, 1e-8, 300), 0.1), 0.01),
        "approximate, rising": (approximate.strong_approximate(strong, 1e-4, 300), 0.001, 0.05),
        "approximate, beyond its lowest": (rising, 0.1, 0.25),
        "approximate, few": (approximate.strong_approximate(clones.strong_clones(1.0, 3), 1e-3, 3), 0.1),
        "approximate, 2021, few": (approximate.plain_approximate(clones.clones_2021(1.0, 3), 1e-3, 3), 0.1),
        "approximate, nothing": (
            approximate.ApproximateProfile(
                clones.strong_clones(1e-15, 9), approximate.Added(2e-9, 1.6e-7, 8.1e-8, 9e-8)
            ),
            0.1,
        ),
        "subsampled": (SubsampledProfile(sure, 0.1), 0.02, 0.1),
        "cohort of a sum": (CohortPair(NoisySumProfile(10, 5.0, -1e-6), 0.1), 0.02),
        "cohort of a sum, reversed": (
            ReversedCohortPair(NoisySumProfile(10, 5.0, -1e-6), 0.1),
            *(0.02, 0.09, 0.2),
        ),
        "foreign losses": (KnownLossProfile((losses,)), 0.2, 0.7),
        "mixture": (MixtureProfile((0.25, 0.7), (sure, clones.strong_adversary(3, 0.6, 0.4, 30))), 0.3),
        "exact binary, few": (ExactBinaryProfile(20, 1.0), 0.1, 0.8),
        "exact binary": (ExactBinaryProfile(3000, 1.0), 0.02),
        "binary among others": (BinaryAmongProfile(3000, 1.0, 2.0), 0.02),
        "centre": (blanket.from_the_centre(1.0, 0.6, 50, CrowdHints()), 0.1),
        "centre, many": (blanket.from_the_centre(0.5, None, 500, CrowdHints()), 0.05),
        "centre, unknown": (blanket.from_the_centre(1.0, None, 50, CrowdHints()), 0.1),
        "total variation": (blanket.tv_universal(1.0, 0.2, 50), 0.05),
        "largest total variation": (blanket.tv_universal(1.0, 0.9, 50), 0.05),
    }


def sums() -> dict[str, Callable[[], Ends]]:
    """Probabilities, tails and sums."""
    one = np.ones(1)
    group = Group(np.array([[-2.0, 0.0, 1.0, 3.0]]), np.array([[0.2, 0.4, 0.3, 0.1]]), 20.0 * one)
    wide = Group(np.arange(-20.0, 21.0)[None], np.full((1, 41), 1.0 / 41.0), 30.0 * one)
    tilted = lattice_sum._tilt(wide, 0.02 * one, 0.0)[0]
    coarse = lattice_sum._tilt(
        Group(np.array([[-1.0, 1.0]]), np.full((1, 2), 0.5), 2.0 * one), 1e-12 * one, 0.0
    )[0]
    three = lattice_sum._tilt(
        Group(np.array([[-3.0, 0.0, 3.0]]), np.array([[0.1, 0.8, 0.1]]), 1e4 * one), 0.1 * one, 0.0
    )[0]
    binary = TwoBinomials(np.array([300.0]), np.array([400.0]), 0.7, 0.3, 0.1)
    half = np.array([500])

    def tail(group: Group, k0: float, theta: float, whole: bool = False) -> Ends:
        own = Own(np.zeros((1, 1)), np.ones((1, 1, 1)))
        found = lattice_sum.tail_sum([group], own, k0 * one, theta * one, whole=whole)
        return around(found.value, found.error)

    def ridge() -> Ends:
        bounds, _ = binary.ridge(0.3 * one, -0.33 * one, 344.0 * one, Ridge(2.0, 1.0, np.arange(-30.0, 31.0)))
        return above(bounds)

    def tails() -> Ends:
        found = binary.tails(np.array([[0.3]]), np.array([[-0.2]]), 340.0 * one)[0]
        return around(found.value, found.error)

    def summed_ratio(n: float, a: float, odds: float) -> Ends:
        ratio, relative = binomial._summed_ratio(n, np.array([a]), odds)
        return around(ratio, relative * ratio)

    def logarithm(found: tuple[Any, Any]) -> Ends:
        return around(np.exp(found[0]), np.exp(found[0]) * found[1])

    return {
        "overlap of caps": lambda: around(*caps.overlap(40, 0.2)),
        "overlap of close caps": lambda: around(*caps.overlap(5, 0.5, 0.3)),
        "no overlap of caps": lambda: around(*caps.overlap(5, math.sqrt(0.5))),
        "power": lambda: above(caps._power(0.3, 2.5)),
        "logarithm of a moment": lambda: logarithm(caps._log_moment(40, 0.2)),
        "cap": lambda: around(
            caps.cap_at(40, 0.2).small, caps.cap_at(40, 0.2).small * caps.cap_at(40, 0.2).error
        ),
        "few drawn": lambda: ends(hypergeometric.at_least(100, 60, 20, np.array([5, 12, 18]))),
        "wide draw": lambda: ends(*(hypergeometric._chernoff(k, 1000, 0.6) for k in (500, 595, 605, 700))),
        "shares": lambda: above(gaussian_shares.conversion(2.0, 1000), gaussian_shares.tail(2.0, 10, 20.0)),
        "mixing": lambda: above(
            mixing.mixing_distance(50, 8, 2**16), mixing.mixing_distance(10**5, 8, 2**16)
        ),
        "binomial": lambda: logarithm(binomial.log_pmf(1000, np.array([0.0, 260.0, 300.0]), 0.3, 0.7)),
        "intervals": lambda: ends(
            binomial.interval_probabilities(100, 0.5, 0.5, np.array([0.0, 1.0, 45.0, 56.0, 70.0, 101.0]))
        ),
        "underflowing intervals": lambda: ends(
            binomial.interval_probabilities(10**5, 0.5, 0.5, np.array([0.0, 1.0, 2.0, 3.0])),
            binomial.interval_probabilities(1000, 1e-160, 1.0, np.array([0.0, 2.0, 3.0])),
        ),
        "underflowing tails": lambda: above(*binomial.tail_bounds(10**5, 0.5, 0.5, np.zeros(1), 10.0**5)),
        "window": lambda: ends(
            binomial.window_probabilities(1000, 0.3, 0.7, np.array([250.0, 290.0, 310.0, 350.0]), 1e-3)
        ),
        "Chernoff": lambda: above(*binomial.tail_bounds(1000, 0.3, 0.7, np.array([200.0, 290.0]), 400.0)),
        "summed ratio": partial(summed_ratio, 50.0, 30.0, 1.0),
        "long summed ratio": partial(summed_ratio, 10_000.0, 3300.0, 3.0 / 7.0),
        "ratio of tails": lambda: around(*binomial.tail_ratio(10**4, np.array([3100.0]), 0.3, 0.7)),
        "signs": lambda: around(
            *signs.mean_of_signs_excess(60.0 * one, one[:, None] * 0.2, one[:, None] * 0.8)[:2]
        ),
        "signs at the top": lambda: around(
            *signs.mean_of_signs_excess(
                60.0 * one, one[:, None] * (58.0 / 60.0), one[:, None] * (2.0 / 60.0)
            )[:2]
        ),
        "table of signs": lambda: around(
            *signs.signs_excess_table(2001.0 * one, one[:, None] * 0.01, one[:, None] * 0.99)[:2]
        ),
        "half": lambda: logarithm(signs._log_half_pmf(np.full(3, 1000.0), np.array([510.0, 900.0, 1000.0]))),
        "lattice": lambda: tail(group, 30.0, 0.3),
        "lattice, whole": lambda: tail(wide, 60.0, 0.02, whole=True),
        "lattice, wide": lambda: tail(wide, 60.0, 0.02),
        "lattice, many copies": lambda: tail(Group(wide.z, wide.w, 1000.0 * one), 1000.0, 0.007),
        "first frequencies": lambda: around(
            *(np.real(part) for part in frequencies.first_transforms(wide.z[0], wide.w.T, 10**6 + 1, 50))
        ),
        "frequencies": lambda: above(
            np.exp(frequencies._log_bound([coarse], np.zeros(1, np.int64), one * 250.25, one * 250.25, half))
        ),
        "frequencies in phase": lambda: ends(
            frequencies._beside_returns(three, np.zeros(1, np.int64), np.array([8]), half, 46.0)[1:]
        ),
        "many frequencies": lambda: above(np.exp(frequencies._log_bounds([tilted], 0, 64, half))),
        "two binomials": tails,
        "ridge": ridge,
    }


def laws() -> dict[str, Callable[[], Ends]]:
    """What curves are made of: laws of X, and crowds of them."""
    hints = LatticeHints()
    wide = law(9, [0.6, 0.4], [0.4, 0.6], [0.4, 0.4])
    slim = law(9, [0.5, 0.5], [0.4, 0.6], [0.4, 0.4])
    tall = law(9, [0.3, 0.7], [0.4, 0.6], [0.1, 0.6])
    steps = law(9, [0.3, 0.45, 0.25], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6])
    flat = law(9, [0.64, 0.36], [0.4, 0.6], [0.3, 0.7])
    x, w = np.array([3.0, 0.2, -0.3, 0.0]), np.array([0.002, 0.3, 0.25, 0.448])
    jump = jumps.Jumps.of(x, w, 1.0, 100, 0.01, 1e-8, hints)
    few_jump = jumps.Jumps.of(np.array([3.0, -0.5]), np.array([0.1, 0.9]), 1.0, 4, 0.5, 1e-2, hints)
    spread = lattice_law.SpreadLaw.of(np.array([[0.1, -0.12]]), np.array([0.3, 0.3]), 100, 0.01, hints)
    uneven = Matrix(UNEVEN)
    family, rows = crowd_family.Family.of_table(uneven), crowd_family.Family.of_rows
    symmetric = Matrix(np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]]))
    mirrored = crowd_family.Family.of_table(symmetric)
    stated = rows(np.array([[0.3, -0.3, 0.0]]), np.array([[0.2, 0.5, 0.3]]), np.array([[0.3, 0.3, 0.4]]))
    taking, tau = Taking(200.0, 1.0, 0.1), np.array([0.1, 0.3, 1.0])
    seconds, _ = stated.seconds.at(taking, 1.0)
    some = stated.pick(np.zeros(1, np.intp), 0.1, 1.0, math.inf)
    moments = crowd_moments.Moments.of(some, 0.1)
    many = ManyLaws.of([law(50, [0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.2, 0.1]), wide_of(50), seen_of(50)])
    unlike = ManyLaws.of([wide_of(5000), law(5000, [0.51, 0.49], [0.5, 0.5], [0.4, 0.4])])
    few = np.array([0.015, 0.5])
    logs, scaled = np.array([0.0, 0.1, 0.2, 0.3]), np.exp(np.linspace(-0.3, 0.3, 7))
    excess = np.array([0.04, 0.01, 0.002, 1e-4])
    heights = np.log(0.01 * (1.0 + (np.log(scaled) - 0.05) ** 2))[None]
    scales = Scales(scaled, 3, excess)

    span = Span(
        np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), np.array([0.1, 0.0, 0.1]), np.full(3, 1e-3), 1e-9
    )
    spanned = crowd_family.Family.of_table(span)
    pools = AtOnce(5000, stated, CrowdHints(), 0.5, 0.0, lambda _: Corners(logs, excess))

    def seen_types() -> Ends:
        gap = np.array([[0.2, 0.1], [0.2, 0.1]])
        return above(many_laws._with_seen(np.array([0.01, 0.9]), gap, 0.5 * gap, np.array([0.3, 0.0])))

    def odd(share: float, n: int) -> Ends:
        laws = np.array([[0.2, -0.1]]), np.array([0.1, 0.9]), np.array([share, 1.0 - share])
        found = law_sum._all_alike(*laws, n)
        return (0.0, 0.0) if found is None else ends((found[0], 0.0), (found[1], found[2]))

    def positive_part() -> Ends:
        at = np.array([[0.0, 1.0]]), np.array([[0.7, 0.3]]), np.array([-0.31]), np.ones(1), np.array([0.05])
        return above(lattice_law.positive_part(*at, 100, np.zeros((1, 2, 0)), 1e-3)[0])

    def two_sided() -> Ends:
        high, (value, low, most) = spread.both(np.array([[0.1, -0.12]]), np.array([0.3, 0.4]))
        return ends((value, high), (low, most), (0.0, spread.chernoff()))

    def jumping() -> Ends:
        value, low, high = jump.lower(x[:3] * w[:3], w[:3])
        return ends((value, jump.upper()), (low, high), (0.0, jump.crude()), (0.0, jump._rest(2)))

    def crowd_of(fraction: float, rate: float) -> crowd.CrowdProfile:
        return crowd.CrowdProfile(300, (), uneven.epsilon0, uneven, fraction=fraction, rate=rate)

    def cut_search() -> Ends:
        rare = Matrix(np.array([[0.5, 0.499, 0.001], [0.4, 0.596, 0.004], [0.6, 0.399, 0.001]]))
        one = crowd.CrowdProfile(300, (), rare.epsilon0, rare, fraction=0.5)
        found = crowd._Search(one, taking, 0.1, scales, seconds, 1.1, 0)
        return above(1.0 - found._variance(np.array([0.2, 0.3])), found._reach, found._missing)

    def nearby(cap: float, growth: float = 0.05) -> Ends:
        told = np.array([0.2, 0.3]), np.array([0.1, 0.1]), 1e-3
        found = Nearby(family, 0.5).at(np.array([4, 0]), growth, cap, *told)
        return above(4.0 + found.high, 4.0 - found.low, found.top, 1.0 + found.doubt[1])

    def tilted_moments() -> Ends:
        variance, k = moments._spread(0.1 * tau, 0.1 * tau * moments.top, np.array([1.01, 1.02, 1.1]))
        return above(4.0 - variance, k)

    def corners(found: Corners) -> Ends:
        return above(found.logs, found.excess, np.array([found.apart]))

    def cohort(fraction: float, rate: float) -> Ends:
        one = crowd_of(fraction, rate)
        return above(one.upper(np.array([0.05, 0.2]), 0.01), one.epsilon_max)

    return {
        "positive part": positive_part,
        "thinned sum, above": lambda: above(
            ThinnedSumProfile(3, 2.0, 0.9, 0.01).upper(np.array([0.1, 1.0]), 0.01)
        ),
        "spread law": two_sided,
        "followed no further": lambda: above(wide_of(50).down_to(0.9).both(few[:1], 0.01)[0]),
        "jumps": jumping,
        "jumps of few": lambda: above(few_jump.upper()),
        "unhidden": lambda: ends((lattice_law.unhidden([0.5, 0.5 - 1e-12]), 0.0)),
        "above a cap": lambda: above(jumps.above_cap(x[None], w, np.array([0.1]))),
        "order of laws": lambda: above(LawOrder((slim, wide, tall)).excess(0.1, 0.11)),
        "order of laws, reversed": lambda: above(LawOrder((tall, slim, wide)).excess(0.1, 0.1)),
        "order of flat laws": lambda: above(LawOrder((steps, flat)).excess(0.01, 0.01)),
        "order of flat laws, reversed": lambda: above(
            LawOrder((steps.reversed(), flat.reversed())).excess(0.01, 0.01)
        ),
        "order of like laws": lambda: above(LawOrder((wide, wide)).excess(0.1, 0.1)),
        "many laws": lambda: above(many.bounds(0.05), many.bounds(0.5), many._largest),
        "unlike laws": lambda: above(unlike.bounds(0.015)),
        "many laws at once": lambda: above(many.largest(few), unlike.largest(few)),
        "seconds": lambda: above(*stated.seconds[:3:2], seconds, family.seconds.at(taking, 0.5)[0]),
        "tilts of seconds": lambda: above(1.0 + stated.seconds.tilt, *family.seconds[:3]),
        "Bennett": lambda: above(
            np.exp(crowd_family.log_bennett(seconds, tau, taking, [(0.5, 0.1), (1.0, 0.0)]))
        ),
        "spread": lambda: above(
            np.exp(crowd_family.log_spread(seconds, 0.5 * seconds, 1.0, 0.2 * tau, 2e4)),
            4.0 - family.seconds.variance(np.array([0.3, 1.0]), 0.1, 1.0),
            family.seconds.doubt,
        ),
        "spread of what is cut": cut_search,
        "seconds of mirror images": lambda: above(*mirrored.seconds[:3:2], mirrored.seconds.tilt + 4.0),
        "bends": lambda: above(crowd_family._bend(tau, 1.0), crowd_family._bend(tau, 30.0)),
        "rest of a series": lambda: above(*(crowd_moments._rest(np.array([0.1, 3.0]), j) for j in (2, 6))),
        "cuts": lambda: above(
            crowd_family._cut(crowd_family._sides(uneven), 1.5),
            *(v for _, v in crowd_family._beyond(uneven)[:1]),
        ),
        "integral": lambda: above(np.exp(some[0].log_integrals(tau, taking))),
        "integral of few": lambda: above(np.exp(some[0].log_integrals(tau, Taking(3.0, 1.0, 0.1)))),
        "integral with coins": lambda: above(np.exp(some[0].log_integrals(tau, taking._replace(rate=0.3)))),
        "integrals": lambda: above(np.exp(some.log_integrals(tau, taking))),
        "moments nearby": partial(nearby, 0.2),
        "moments nearby, not cut": partial(nearby, 90.0),
        "moments not so near": partial(nearby, 90.0, 0.2),
        "Chernoff of laws": lambda: above(np.exp(moments.log_chernoff(tau, taking))),
        "moments of laws": lambda: above(moments.high[1::2], 4.0 - moments.low, moments.top),
        "normal laws": lambda: above(np.exp(moments.log_normal(tau, taking))),
        "tilted moments": tilted_moments,
        "expectation": lambda: above(expectation(scaled, heights, 3, excess)),
        "expectation of one": lambda: above(expectation(np.ones(1), heights[:, :1], 0, np.zeros(1))),
        "interpolated": lambda: above(scales.interpolated(1.0 + heights[:, scales.nodes] ** 2)),
        "corners": lambda: corners(crowd_of(1.0, 1.0)._corners(20, 0.0)),
        "crowd at once": lambda: above(pools.bounds(few)[0]),
        "one odd report": lambda: odd(0.1, 5),
        "moved of one report": lambda: above(
            approximate.crowd_approximate(clones.strong_clones(1.0, 9), 1.0, 1e-6).added.slope
        ),
        "added where others stay": lambda: above(
            *(np.array(part) for part in astuple(approximate._left_in_place(1.0, 1e-3, 3e-4)) if part)
        ),
        "with seen": seen_types,
        "inside": lambda: above(
            crowd_inside.inside(*map(np.array, ([3.0], [[20.0]], [[1.0]], [0.001], [10.0])))
        ),
        "cohort of binary response": lambda: above(
            BinaryCohortProfile(30, 2.0, 0.1).upper(np.array([0.0, 0.1]), 1e-3)
        ),
        "inside of cores": lambda: above(
            crowd_inside.inside(*map(np.array, ([0.5], [[20.0, 1.0]], [[1.0, 0.01]], [0.001], [10.0])))
        ),
        "integrals of cores": lambda: above(np.exp(heavy_laws().log_integrals(np.array([0.05]), taking))),
        "Mills": lambda: above(crowd_inside._mills(np.array([0.5, 7.0]))),
        "rows that span: second moments": lambda: above(
            np.array([float(part.max()) for part in spanned.seconds[:3]])
        ),
        "rows that span: beyond a cap": lambda: above(np.array([crowd_family._cut(span.sides, 1.2)])),
        "rows that span: means": lambda: above(
            crowd_family.log_bennett(np.array([0.2]), tau, taking, [(2.0, 0.0)], spanned.excess)
        ),
        "rows that span: lost": lambda: above(
            np.array([crowd.CrowdProfile(50, (), span.epsilon0, span).lost(0.1)])
        ),
        "cut": lambda: above(np.asarray(Cut(1e-3, 0.0, 0.5, 2.0).lost(np.array([0.1]), 0.2))),
        "cut, moved": lambda: above(np.asarray(Cut(1e-3, 1e-4, 0.5, 2.0).lost(np.array([0.1]), 0.2))),
        "moved": lambda: above(np.array([approximate.moved_by_clones(1.0, 1e-6, 100)])),
        "crowd": partial(cohort, 1.0, 1.0),
        "crowd, cohort": partial(cohort, 0.1, 1.0),
        "crowd, coins": partial(cohort, 1.0, 0.1),
    }


def heavy_laws() -> Laws:
    """Twelve values, some far out: of cores little is left but these."""
    clone = np.array([[0.2, 0.15, 0.1, 0.05, 0.04, 0.03, 0.03, 0.05, 0.1, 0.15, 0.099, 0.001]])
    own = clone * np.exp(np.array([0.3, 0.2, 0.1, 0.0, 0.1, -0.1, 0.2, -0.2, -0.1, -0.2, -0.4, 4.0]))
    own /= own.sum()
    return Laws.of(own - clone, clone, clone, 0.1, 1.0, math.inf)


def wide_of(n: int) -> AmplificationProfile:
    return law(n, [0.6, 0.4], [0.4, 0.6], [0.4, 0.4])


def seen_of(n: int) -> AmplificationProfile:
    return law(n, [0.5, 0.3, 0.2], [0.5, 0.49, 0.01], [0.3, 0.3, 0.0])


def composed() -> dict[str, Callable[[], Ends]]:
    """Rounds together, and what answers end with."""
    index, value = np.array([0.0, 8.0, 16.0, 24.0]), np.array([0.5, 0.2, 0.05, 0.01])
    slope = np.array([0.6, 0.2, 0.05, 0.004])
    found = Samples(index, value * 1.01, value, slope, slope, 1e-3)

    def loss_of(infinity: float) -> ComposedLoss:
        mass = np.array([0.3, 0.3, 0.4 - infinity])
        return ComposedLoss(((LossDistribution(0.1, np.array([-3.0, 0.0, 3.0]), mass, infinity), 7),), Tilts)

    def deltas(infinity: float, theta: float | None, *epsilon: float) -> Ends:
        return ends(loss_of(infinity).delta(np.array(epsilon), theta))

    def polygons() -> Ends:
        above_, below = loss.above(found, 0.05), loss._below(found, 0.05)
        _, heights = loss._along_the_lines(found, 0.05)
        return ends((0.0, above_.value), (below.value, 0.0), (np.sort(heights), 0.0))

    sure = clones.strong_adversary(3, 0.6, 0.4, 40)
    one = Round(sure, (sure,), math.inf, 0.0)
    pure = clones.strong_clones(1.0, 30)
    two = [(one, 2), (Round(sure, (sure,), 1.1, 1.1), 3)]
    moments = LogMoments(tuple((0.01 * THETAS**2).tolist()), 1e-8)
    small = LogMoments(tuple((1e-4 * THETAS**2).tolist()), 1e-8)
    return {
        "infinite losses": lambda: ends(loss_of(1e-3).infinities, (0.0, loss_of(1e-3).largest)),
        "composed": partial(deltas, 0.0, 2.0, 0.6, 0.65),
        "composed, neighbours": partial(deltas, 1e-3, None, 0.6, 0.62, 0.65),
        "polygons": polygons,
        "added moments": lambda: above((moments + moments).logs[::8], (moments + moments).infinity),
        "epsilon of moments": lambda: above(moments.upper_epsilon(1e-6), small.upper_epsilon(4e-3)),
        "seen in rounds": lambda: ends(
            (several_rounds.infinite_loss(two), 0.0),
            (lower.seen_at_once(two), 0.0),
            (upper._agreed(1.0 + 2.0**-28, 1.0), 0.0),
        ),
        "pure in rounds": lambda: above(
            upper._pure([(Round(pure, (), 0.1, 0.1), 3), (Round(pure, (), 0.2, 0.2), 1)])
        ),
        "apart": lambda: above(several_rounds._apart([(Round(pure, (), 1.0, 1.0), 2)])),
        "nothing but pure": lambda: above(
            upper._each_delta([(Round(Refusing(), (), 1.0, 1.0), 2)], np.array([0.5]), 1e-3)
        ),
    }


class Refusing(PrivacyProfile):
    """A curve that certifies nothing."""

    epsilon_max = 1.0

    def upper(self, epsilon: Floats, resolution: float) -> Floats:
        raise NoCertificateError("nothing")

    def support(self, epsilon: Floats, resolution: float) -> SupportingLines:
        raise NoCertificateError("nothing")


def questions() -> dict[str, Callable[[], Ends]]:
    asked = {f"curve: {name}": partial(curve, *asked) for name, asked in curves().items()}
    return {**asked, **sums(), **laws(), **composed()}
