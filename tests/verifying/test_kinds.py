"""What the verifier knows beside laws of X: crowds (T16, V5), groups (T21, V4), shares (T17, T18), leaks."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx

import shuffledp as sdp
from shuffledp.accounting.blanket_counts import BlanketCounts
from shuffledp.accounting.cohort import Cohort
from shuffledp.accounting.mixed_sum import MixedSum
from shuffledp.accounting.mixed_vectors import MixedVectors
from shuffledp.verifying import _groups, _positive_part
from shuffledp.verifying._binary import _Bar, _Box
from shuffledp.verifying._crowd import _Heights, _Tried
from shuffledp.verifying._curves import alternatives, least_of, upper
from shuffledp.verifying._families import Family
from shuffledp.verifying._groups import _by_number, among_groups
from shuffledp.verifying._mixed_sum import mixing, noisy_sum, noisy_vectors, thinned_sum
from shuffledp.verifying._positive_part import _closer_and_closer, _enumerated
from shuffledp.verifying._tilted_sum import TiltedSum
from shuffledp.verifying._variable import Variable

UNARY = sdp.SymmetricUnaryEncoding(k=16, epsilon0=1.0)
MATRIX = sdp.FiniteRandomizer([[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.25, 0.25, 0.5]])
LEAKY = sdp.Facts(epsilon0=1.0, delta0=1e-14)
GROUPS = sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 2_000, 4.0: 5_000}, k=16)
VECTORS = MixedVectors(n=10_000, dimension=100, farthest=2000**2, variance=7200.0, messages=9, modulus=2**28)
SUM = MixedSum(n=10_000, levels=100, scale=101.0, messages=9, modulus=2**24)
ON_THE_LINE = sdp.facts_of_noise(
    lambda t: -2.0 * t, lambda t: 0.5 * np.exp(-2.0 * t), epsilon0=2.0
)  # Laplace noise of scale 1/2
LAPLACE_ON_THE_LINE = sdp.facts_of_noise(
    lambda t: -t - math.log(2.0), lambda t: 0.5 * np.exp(-t), epsilon0=1.0
)
GAUSSIAN_ON_THE_LINE = sdp.facts_of_noise(
    lambda t: -(t**2) / 32.0 - math.log(4.0 * math.sqrt(2.0 * math.pi)),
    np.vectorize(lambda t: 0.5 * math.erfc(t / (4.0 * math.sqrt(2.0))), otypes=[float]),
)  # of deviation 4
MECHANISMS: dict[str, sdp.Mechanism] = {
    "crowd": sdp.Shuffled(UNARY, n=3000, analysis="crowd"),
    "crowd, 1e7 users": sdp.Shuffled(UNARY, n=10**7),
    "crowd of a matrix": sdp.Shuffled(MATRIX, n=3000),
    "crowd in a cohort": sdp.Shuffled(UNARY, n=3000, analysis="crowd").sampled_from(30_000),
    "crowd, five rounds": 5 * sdp.Shuffled(UNARY, n=10**5),
    "groups": GROUPS,
    "one group": GROUPS.person(1.0),
    "one group of one bit": sdp.ShuffledGroups.of(
        sdp.KaryRandomizedResponse, {1.0: 500, 2.0: 2_000}, k=2
    ).person(1.0),
    "one group of noise": sdp.ShuffledGroups.of(sdp.DiscreteLaplace, {1.0: 500, 2.0: 2_000}, levels=2).person(
        1.0
    ),
    "one group of many bits": sdp.ShuffledGroups.of(
        sdp.OptimisedUnaryEncoding, {0.3: 3_000, 0.4: 5_000}, k=64
    ).person(0.3),
    "groups, ten rounds": 10 * GROUPS,
    "shares": SUM,
    "shares, ten rounds": 10 * SUM,
    "shares of nine in ten people": replace(SUM, n=9_000, sized=10_000),
    "blanket messages": BlanketCounts(n=10**6, slots=1, clone=43e-6),
    "hashed messages": BlanketCounts(n=10**5, slots=4, clone=3e-4, buckets=101),
    "vectors": VECTORS,
    "vectors of cohorts, 100 rounds": 100 * Cohort(VECTORS, population=10**6),
    "levels of a tree": sdp.Shuffled(sdp.LeveledResponse(64, epsilon0=2.0), n=10_000),
    "crowd of noise on nine levels": sdp.Shuffled(sdp.DiscreteLaplace(levels=8, epsilon0=1.0), n=2000),
    "crowd of Gaussian noise": sdp.Shuffled(sdp.DiscreteGaussian(sigma=1.0), n=10**5),
    "honest people of a cohort": sdp.Shuffled(
        sdp.BinaryRandomizedResponse(epsilon0=2.0), n=100, population=200, honest_fraction=0.9
    ),
    "honest people of a large cohort": sdp.Shuffled(
        sdp.LInfinityRandomizer(100, epsilon0=0.5),
        n=10**7,
        analysis="clones-2021",
        population=10**8,
        honest_fraction=0.7,
    ),
    "honest people of a large cohort with Gaussian noise": sdp.Shuffled(
        sdp.DiscreteGaussian(sigma=2.0, levels=8), n=10**7, population=10**8, honest_fraction=0.7
    ),
    "rare reports that tell all": sdp.Shuffled(
        sdp.DiscreteGaussian(sigma=0.2, levels=8), n=1000, analysis="blanket"
    ).sampled_from(10_000),
    "crowd, a large epsilon0, 100 rounds": 100
    * sdp.Shuffled(sdp.LInfinityRandomizer(100, epsilon0=4.0), n=10_000),
    "crowd of few people, 100 rounds": 100
    * sdp.Shuffled(sdp.DiscreteLaplace(levels=1, epsilon0=1.0), n=200, analysis="crowd"),
    "crowd of few people with two reports, 500 rounds": 500
    * sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.75), n=163, analysis="crowd"),
    "rare reports of cohorts, 85 rounds": 85
    * sdp.Shuffled(sdp.DiscreteGaussian(sigma=1.4, levels=8), n=9000, analysis="crowd").sampled_from(90_000),
    "crowd of few people with noise on the line, ten rounds": 10
    * sdp.Shuffled(LAPLACE_ON_THE_LINE, n=200, analysis="crowd"),
    "a cohort of binary response, ten rounds": 10
    * sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=4.0), n=60).sampled_from(600),
    "a large cohort of binary response": sdp.Shuffled(
        sdp.BinaryRandomizedResponse(epsilon0=3.0), n=500
    ).sampled_from(5000),
    "clones in a cohort": sdp.Shuffled(sdp.LocalRandomizer(epsilon0=8.0), n=10**4).sampled_from(10**6),
    "clones of a large epsilon0 in a cohort": sdp.Shuffled(
        sdp.LocalRandomizer(epsilon0=50.0), n=10**4
    ).sampled_from(10**6),
    "clones of a large epsilon0 in cohorts, 12 rounds": 12
    * sdp.Shuffled(sdp.LocalRandomizer(epsilon0=35.0), n=10**6).sampled_from(10**8),
    "leaks in a cohort": sdp.Shuffled(LEAKY, n=10_000).sampled_from(10**5),
    "leaks by coins": sdp.Shuffled(LEAKY, n=10_000, analysis="clones-2021").sampled_from(10**5, poisson=True),
    "a small scale": sdp.Shuffled(sdp.DiscreteGaussian(sigma=0.3), n=2000, analysis="best-leaked"),
    "a small scale by coins": sdp.Shuffled(sdp.DiscreteGaussian(sigma=0.8, levels=8), n=10**5).sampled_from(
        10**6, poisson=True
    ),
    "leaks, ten rounds": 10 * sdp.Shuffled(LEAKY, n=200),
    "vectors by coins": sdp.Shuffled(sdp.GaussianUnit(100, epsilon0=4.0), n=200).sampled_from(
        2000, poisson=True
    ),
    "vectors on a ramp": sdp.Shuffled(sdp.RampUnit(100, epsilon0=4.0), n=10_000, analysis="blanket"),
    "noise on the line, 100 rounds": 100 * sdp.Shuffled(ON_THE_LINE, n=10**6, analysis="blanket"),
    "two rows, ten rounds": 10
    * sdp.Shuffled(sdp.FiniteRandomizer([[0.6, 0.1, 0.3], [0.4, 0.2, 0.4]]), n=10**5),
}


def changed(certificate: sdp.Certificate, change: Callable[[dict[str, Any]], None]) -> sdp.Certificate:
    """Falsified, with a new digest: only mathematics can tell."""
    content = certificate.to_dict()
    change(content)
    claim = content["claim"]
    return sdp.Certificate.made(claim["epsilon"], claim["delta"], content["rounds"], content["spacing"])


def is_verified_and_less_is_not(bound: sdp.Bound) -> bool:
    """Less: just below what a pair of datasets attains."""
    certificate = bound.certificate()

    def false(content: dict[str, Any]) -> None:
        content["claim"]["epsilon"] = bound.lower * (1.0 - 1e-4)

    return bool(certificate.verify(bits=128) and not changed(certificate, false).verify(bits=128))


SLOW = (
    "crowd of Gaussian noise",
    "honest people of a cohort",
    "crowd, five rounds",
    "a small scale",
    "groups, ten rounds",
    "crowd of a matrix",
    "crowd, 1e7 users",
    "two rows, ten rounds",
    "honest people of a large cohort with Gaussian noise",
    "rare reports that tell all",
    "crowd, a large epsilon0, 100 rounds",
    "crowd of few people, 100 rounds",
    "rare reports of cohorts, 85 rounds",
    "crowd of few people with noise on the line, ten rounds",
)
CASES = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in MECHANISMS]


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_verified_and_what_is_below_the_truth_is_not(name: str) -> None:
    bound = MECHANISMS[name].epsilon(delta=1e-6, tolerance=1e-2 if "rounds" in name else 1e-3)
    certificate = bound.certificate()
    found = certificate.verify(bits=128)
    assert found, found

    def false(content: dict[str, Any]) -> None:
        content["claim"]["epsilon"] = bound.lower * (1.0 - 1e-4) if bound.lower else 0.8 * bound.upper

    assert not changed(certificate, false).verify(bits=128)


@pytest.mark.parametrize(
    ("randomizer", "n", "delta"),
    [
        (sdp.LInfinityRandomizer(100, epsilon0=2.0), 10_000, 4e-8),
        (sdp.DiscreteLaplace(levels=1, epsilon0=1.0), 200, 2.8e-6),
        (LAPLACE_ON_THE_LINE, 200, 6e-10),
    ],
)
def test_pools_among_few_people_are_as_good_as_the_accountants(randomizer: Any, n: int, delta: float) -> None:
    """Points of grids of rounds that were refused: as a round each."""
    bound = sdp.Shuffled(randomizer, n=n, analysis="crowd").epsilon(delta=delta)
    assert is_verified_and_less_is_not(bound)


@pytest.mark.quick
def test_a_multiple_of_the_spacing_may_miss_epsilon0_by_a_rounding_and_by_no_more() -> None:
    local, last = 5.5492, 9792
    spacing = local / last
    assert spacing * last == local
    assert Fraction(spacing) * last < Fraction(local)
    curve = {"kind": "clones", "n": 5, "epsilon0": local}
    index = list(range(0, last + 1, last // 16))
    with ctx.workprec(128):
        value = [float(upper(curve, arb(spacing) * j, arb(0))) * (1.0 + 1e-6) for j in index[:-1]] + [0.0]

    def verified(step: float) -> bool:
        grid = {"index": index, "value": value}
        rounds = [{"count": 2, "epsilon0": local, "curve": curve, "grid": grid}]
        return bool(sdp.Certificate.made(2.0 * local - 1e-6, 9.9e-7, rounds, step).verify(bits=128))

    assert verified(spacing)
    assert not verified(spacing * (1.0 - 1e-12))


def test_laws_that_are_rounded_outward_miss_nothing() -> None:
    """Noise on the line: own is raised, other lowered by 5e-13."""
    mechanism = sdp.Shuffled(GAUSSIAN_ON_THE_LINE, n=200, analysis="best-leaked").sampled_from(
        2000, poisson=True
    )
    bound = mechanism.epsilon(delta=1e-12)
    assert is_verified_and_less_is_not(bound)


def test_a_stated_loss_is_no_less_than_that_of_a_law_that_is_rounded_outward() -> None:
    """By 1.5e-8, which is more than a verifier takes for rounding."""
    noise = sdp.facts_of_noise(
        lambda t: -0.4477 * t - math.log(2.0 / 0.4477), lambda t: 0.5 * np.exp(-0.4477 * t), epsilon0=0.4477
    )
    rounds = 3 * sdp.Shuffled(noise, n=2000, analysis="blanket")
    certificate = rounds.epsilon(delta=1e-6, tolerance=1e-2).certificate()
    assert 0.4477 < certificate.to_dict()["rounds"][0]["epsilon0"] < 0.4477 + 1e-7
    assert certificate.verify(bits=128, of=rounds)


@pytest.mark.slow
def test_a_coarse_answer_has_the_certificate_of_a_coarse_grid() -> None:
    """On finer ones so small a crowd has an infinite loss too often."""
    few = sdp.Shuffled(sdp.DiscreteLaplace(levels=1, epsilon0=2.4311), n=649, analysis="crowd")
    with pytest.warns(sdp.CoarserBoundWarning):
        bound = (3 * few).epsilon(delta=1e-6)
    assert bound.certificate().verify(bits=128)


@pytest.mark.quick
def test_one_jump_among_values_that_are_not_positive() -> None:
    rows = [(-13.0, 0.98), (-760.0, 2e-4), (-1e6, 1e-9), (-5.0, 1e-12), (50.0, 1e-15), (3200.0, 5e-20)]
    with ctx.workprec(128):
        law, n = Variable([arb(v) for v, _ in rows], [arb(m) for _, m in rows]), 6
        truth = _enumerated(law, n)
        enough = truth * (1 + arb(1e-3))
        assert truth <= _closer_and_closer(law, n, enough) <= enough


def fewer_users(curve: dict[str, Any]) -> None:
    curve["n"] = int(0.8 * curve["n"])


def less_hidden(curve: dict[str, Any]) -> None:
    for row in curve["types"]:
        row[3] *= 0.8


def smaller_groups(curve: dict[str, Any]) -> None:
    curve["groups"] = [[share, int(0.8 * people)] for share, people in curve["groups"]]


def more_open_others(curve: dict[str, Any]) -> None:
    if curve["kind"] == "binary":
        curve["others"] *= 1.05
    if curve["kind"] == "groups":
        less_hidden(curve)


def fewer_messages(curve: dict[str, Any]) -> None:
    curve["messages"] -= 4


def less_noise(curve: dict[str, Any]) -> None:
    curve["scale"] *= 0.99


def less_variance(curve: dict[str, Any]) -> None:
    curve["variance"] *= 0.99


def further_apart(curve: dict[str, Any]) -> None:
    curve["farthest"] = int(1.01 * curve["farthest"])


def a_worse_row(curve: dict[str, Any]) -> None:
    if "rows" in curve:
        row = curve["rows"][0]
        row[0], row[-1] = row[0] + 0.5 * row[-1], 0.5 * row[-1]
    if "types" in curve:
        less_hidden(curve)
    if curve["kind"] == "clones":
        curve["epsilon0"] *= 1.2


def a_worse_law(curve: dict[str, Any]) -> None:
    own, other, gap, clone = (list(one) for one in zip(*curve["laws"][0], strict=True))
    own[0], gap[0] = own[0] + 0.02, gap[0] + 0.02
    own[-1], gap[-1] = own[-1] - 0.02, gap[-1] - 0.02
    curve["laws"][0] = [list(row) for row in zip(own, other, gap, clone, strict=True)]


def a_larger_share_of_all(curve: dict[str, Any]) -> None:
    curve["fraction"] *= 1.02


def a_larger_epsilon0(curve: dict[str, Any]) -> None:
    curve["epsilon0"] *= 1.02


FALSE = [
    ("clones in a cohort", fewer_users),
    ("clones in a cohort", a_larger_share_of_all),
    ("clones in a cohort", a_larger_epsilon0),
    ("clones of a large epsilon0 in a cohort", a_larger_share_of_all),
    ("clones of a large epsilon0 in cohorts, 12 rounds", a_larger_share_of_all),
    ("clones of a large epsilon0 in cohorts, 12 rounds", a_larger_epsilon0),
    ("crowd", fewer_users),
    ("crowd", a_worse_law),
    ("one group", less_hidden),
    ("one group", smaller_groups),
    ("one group of one bit", more_open_others),
    ("shares", fewer_messages),
    ("shares", less_noise),
    ("vectors", less_variance),
    ("vectors", further_apart),
    ("crowd of noise on nine levels", a_worse_row),
]


def parts(curve: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All curves of one round that are not made of others."""
    inner = curve.get("curves", [])
    if not inner:
        yield curve
    for part in inner:
        yield from parts(part)


@pytest.mark.parametrize(("name", "change"), FALSE, ids=lambda one: getattr(one, "__name__", one))
def test_a_falsified_part_is_refused(name: str, change: Callable[[dict[str, Any]], None]) -> None:
    certificate = MECHANISMS[name].epsilon(delta=1e-6).certificate()

    def false(content: dict[str, Any]) -> None:
        for part in parts(content["rounds"][0]["curve"]):
            change(part)

    assert not changed(certificate, false).verify(bits=128)


def ball(x: Fraction) -> arb:
    return arb(x.numerator) / x.denominator


def in_a_cohort(people: int, epsilon0: arb, clone: arb, share: arb, alpha: arb) -> arb:
    """The sum of (P - alpha Q)_+ over all counts of reports x, x' and neither: a cohort of so many, each of
    whom sends x and x' with probability ``clone``; one is, by chance, the one who differs."""
    others, grown = [clone, clone, 1 - 2 * clone], epsilon0.exp()
    here = grown / (grown + 1), 1 / (grown + 1), arb(0)

    def seen(told: tuple[arb, ...], counts: tuple[int, ...]) -> arb:
        one = [share * own + (1 - share) * other for own, other in zip(told, others, strict=True)]
        return sum((one[i] * of_others(counts, i) for i in range(3) if counts[i]), arb(0))

    def of_others(counts: tuple[int, ...], but: int) -> arb:
        left = [count - (i == but) for i, count in enumerate(counts)]
        ways = math.factorial(people - 1) // math.prod(map(math.factorial, left))
        return ways * math.prod((p**count for p, count in zip(others, left, strict=True)), start=arb(1))

    total = arb(0)
    for x, y in product(range(people + 1), repeat=2):
        if x + y <= people:
            counts = x, y, people - x - y
            total += (seen(here, counts) - alpha * seen((here[1], here[0], here[2]), counts)).max(arb(0))
    return total


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["clones", "clones-2021"])
@pytest.mark.parametrize("epsilon0", [1.5, 35.0])
def test_clones_in_a_cohort_are_the_curve_of_all_outcomes(kind: str, epsilon0: float) -> None:
    with ctx.workprec(256):
        grown, share, people = arb(epsilon0).exp(), 0.25, 5
        clone = 1 / (grown + 1) if kind == "clones" else 1 / (2 * grown)
        stated = {"kind": kind, "n": people, "epsilon0": epsilon0, "fraction": share}
        for epsilon in (0.0, 0.1, 0.3, 0.9 * epsilon0):
            truth = in_a_cohort(people, arb(epsilon0), clone, arb(share), arb(epsilon).exp())
            found = upper(stated, arb(epsilon), truth * (1 + arb(1e-6)))
            assert found.upper() >= truth  # a share is known up to some units: so is what is found
            assert found <= truth * (1 + arb(1e-5)) + arb(1e-30)


@pytest.mark.quick
def test_a_certificate_of_a_cohort_says_so_in_words() -> None:
    certificate = MECHANISMS["clones in a cohort"].epsilon(delta=1e-6).certificate()
    assert "clones n = 10000 in a cohort of 0.01 of all" in certificate.about


@pytest.mark.quick
@pytest.mark.parametrize("fraction", [-1e-9, 1.1, math.nan])
def test_a_share_of_all_is_a_share(fraction: float) -> None:
    curve = {"kind": "clones", "n": 100, "epsilon0": 1.0, "fraction": fraction}
    for stated in (None, 0.0, 1.0):
        part = {"count": 1, "epsilon0": stated, "curve": curve}
        with pytest.raises(ValueError, match=r"in \[0, 1\]|Out of range"):
            sdp.Certificate.made(0.0, 1e-6, [part]).verify(bits=128)


@pytest.mark.quick
def test_the_share_of_a_curve_with_a_delta0_is_not_that_of_its_base() -> None:
    base = {"kind": "clones", "n": 100, "epsilon0": 1.0, "fraction": 0.1}
    with pytest.raises(ValueError, match="fraction must be that of the curve"):
        upper({"kind": "approximate", "delta0": 1e-9, "at": 0.5, "base": base}, arb(0.1), arb(0))


def random_law(source: random.Random, types: int) -> list[tuple[Fraction, Fraction]]:
    weights = [source.randint(1, 9) for _ in range(types)]
    return [
        (Fraction(source.randint(-9, 9), source.randint(1, 4)), Fraction(w, sum(weights))) for w in weights
    ]


def test_kinds_of_a_round_are_above_their_mean_and_as_close_as_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mixture of laws among some people, of which each is enumerated; alone, and as any of two."""
    epsilon, sizes, weights = arb(0.1), [14, 15, 16, 20], [0.125, 0.5, 0.25, 0.125]
    laws = [{**stated_law(0.4 + 0.01 * n), "n": n} for n in sizes]
    with ctx.workprec(128):
        truth = arb(0)
        for w, law in zip(weights, laws, strict=True):
            truth += arb(w) * upper(law, epsilon, arb(1e-9))  # few people: exact
        monkeypatch.setattr(_positive_part, "_FEW_OUTCOMES", (0, 0))
        monkeypatch.setattr(_positive_part, "_FEW_COUNTS", (0, 0))
        alone = {"kind": "mixture", "weights": weights, "curves": laws}
        either = [{"kind": "least", "curves": [{**law, "n": law["n"] - 1}, law]} for law in laws]
        for curve in (alone, {**alone, "curves": either}):
            places = alternatives(curve)
            assert len(places) == (1 if curve is alone else 3)
            for share in (1.5, 1.01):
                found, _ = least_of(places, epsilon, truth * share)
                assert truth <= found <= truth * share
        assert least_of([alone], epsilon, truth * 0.9)[0] >= truth


def stated_law(own: float) -> dict[str, Any]:
    """Three reports: of one input, of the other, of both."""
    other, rest = 0.25 * own, 1.0 - 1.25 * own
    rows = [[own, other, own - other, other], [other, own, other - own, other], [rest, rest, 0.0, rest]]
    return {"kind": "law", "types": rows}


Coins = list[tuple[Fraction, int]]


def mean_among_groups(law: list[tuple[Fraction, Fraction]], groups: Coins) -> Fraction:
    """The left side of V4, from all outcomes."""
    sums = {x: [p, p * x] for x, p in law}  # of every sum its mass, and that times the own value
    for coin, people in groups:
        for _ in range(people):
            more: dict[Fraction, list[Fraction]] = {}
            for total, row in sums.items():
                for x, p in [(Fraction(0), 1 - coin), *((x, coin * p) for x, p in law)]:
                    old = more.get(total + x, [Fraction(0)] * 2)
                    more[total + x] = [a + b * p for a, b in zip(old, row, strict=True)]
            sums = more
    return sum((row[1] for total, row in sums.items() if total > 0), Fraction(0))


def random_groups(source: random.Random) -> Coins:
    return [(Fraction(source.randint(5, 9), 10), source.randint(4, 8)) for _ in range(2)]


@pytest.mark.quick
def test_groups_are_above_their_mean_and_close_to_it() -> None:
    """V4 against all outcomes."""
    source = random.Random(7)
    for _ in range(4):
        law, groups = random_law(source, 3), random_groups(source)
        truth = mean_among_groups(law, groups)
        with ctx.workprec(128):
            variable = Variable([ball(x) for x, _ in law], [ball(p) for _, p in law])
            others = [(ball(coin), people) for coin, people in groups]
            found = among_groups(variable, others, ball(truth) * (1 + arb(0.02)))
            assert not found < ball(truth)
            assert found <= ball(truth) * (1 + arb(0.1)) + arb(1e-3), (law, groups)


@pytest.mark.quick
def test_groups_by_how_many_coins_fall_on_one_are_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """V4, few people; and above it where large numbers of coins are taken together."""
    source = random.Random(8)
    for _ in range(4):
        weights = [source.randint(1, 9) for _ in range(3)]
        values = source.randint(2, 9), -source.randint(1, 3), -source.randint(4, 9)
        law = [(Fraction(x), Fraction(w, sum(weights))) for x, w in zip(values, weights, strict=True)]
        groups = random_groups(source)
        truth = mean_among_groups(law, groups)
        with ctx.workprec(128):
            variable = Variable([ball(x) for x, _ in law], [ball(p) for _, p in law], arb(0))
            others = [(ball(coin), people) for coin, people in groups]
            assert abs(_by_number(variable, others, arb(1)) - ball(truth)) < arb(1e-25)
            with monkeypatch.context() as patched:
                patched.setattr(_groups, "_numbers", lambda others, all_=_groups._numbers: all_(others)[:6])
                assert _by_number(variable, others, arb(1)) > ball(truth)


@pytest.mark.quick
def test_sums_of_sizes_are_above_their_integral() -> None:
    """V5: int |phi(tau + iw)|^n / (tau^2 + w^2) dw = (pi/tau) E e^(2 tau min(S, S')), S of n/2 copies."""
    source = random.Random(11)
    for n in (2, 4, 6):
        law = random_law(source, 3)
        tau = Fraction(source.randint(1, 8), 8)
        half = [
            (sum((x for x, _ in one), Fraction(0)), math.prod((p for _, p in one), start=Fraction(1)))
            for one in product(law, repeat=n // 2)
        ]
        with ctx.workprec(128):
            pairs = ((min(x, y), p * q) for (x, p), (y, q) in product(half, half))
            mean = sum(((2 * ball(tau) * ball(x)).exp() * ball(p) for x, p in pairs), arb(0))
            truth = mean / (2 * n * ball(tau))  # and 1 / (2 pi n)
            variable = Variable([ball(x) for x, _ in law], [ball(p) for _, p in law])
            made = replace(TiltedSum.at(float(tau), variable, n, 1e-4), absolute=True)
            # The blur moves the integral by one or two per cent; aliases only add.
            assert truth * arb(0.97) <= made.upper() <= truth * arb(1.03)
            assert replace(made, step=6.0 * made.step).upper() >= made.upper() * arb(0.999)


@pytest.mark.quick
@pytest.mark.parametrize(("people", "messages", "modulus"), [(2, 3, 2), (3, 3, 2), (2, 4, 3)])
def test_shares_are_no_further_than_said(people: int, messages: int, modulus: int) -> None:
    """T17: the largest distance over all inputs, by enumeration of all shares."""

    def law(values: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        found: dict[tuple[int, ...], Fraction] = {}
        free = list(product(range(modulus), repeat=messages - 1))
        for chosen in product(free, repeat=people):
            shares = [
                share
                for x, some in zip(values, chosen, strict=True)
                for share in (*some, (x - sum(some)) % modulus)
            ]
            key = tuple(sorted(shares))
            found[key] = found.get(key, Fraction(0)) + Fraction(1, len(free) ** people)
        return found

    uniform: list[dict[tuple[int, ...], Fraction]] = [{} for _ in range(modulus)]
    for shares in product(range(modulus), repeat=people * messages):
        place, key = uniform[sum(shares) % modulus], tuple(sorted(shares))
        weight = Fraction(modulus, modulus ** (people * messages))
        place[key] = place.get(key, Fraction(0)) + weight
    for values in product(range(modulus), repeat=people):
        one, other = law(values), uniform[sum(values) % modulus]
        distance = sum(abs(one.get(k, Fraction(0)) - other.get(k, Fraction(0))) for k in {*one, *other}) / 2
        assert ball(distance) <= mixing(people, messages, modulus)


@pytest.mark.quick
def test_a_noisy_sum_is_the_curve_of_all_outcomes() -> None:
    """T18 without shares: discrete Laplace noise, summed far out."""
    levels, scale = 5, 2.5
    a = (-1 / arb(scale)).exp()
    for epsilon in (0.0, 0.3, 1.0, 1.9):
        truth = arb(0)
        for k in range(-400, 400):
            gap = a ** abs(k) - arb(epsilon).exp() * a ** abs(k - levels)
            truth += gap.max(arb(0)) * (1 - a) / (1 + a)
        found = noisy_sum(levels, arb(scale), arb(0), arb(epsilon))
        assert abs(found - truth) < arb(1e-12)


@pytest.mark.quick
def test_a_thinned_sum_is_the_curve_of_all_outcomes() -> None:
    """T18: half of the people add their share, negative binomial of r = 1/2; summed up term by term."""
    levels, scale, off = 3, 1.25, arb(1e-4)
    a = (-1 / arb(scale)).exp()
    law = [(1 - a).sqrt()]
    for j in range(1, 150):
        law.append(law[-1] * a * (j - arb(0.5)) / j)
    noise = [sum((p * q for p, q in zip(law, law[k:], strict=False)), arb(0)) for k in range(100)]
    values = []
    for epsilon in (0.0, 0.3, 1.0, 1.9, 3.0):
        gaps = (noise[abs(k)] - arb(epsilon).exp() * noise[abs(k - levels)] for k in range(-90, 90))
        truth = sum((gap.max(arb(0)) for gap in gaps), arb(0))
        assert abs(thinned_sum(levels, scale, (1, 2), arb(0), arb(epsilon)) - truth) < arb(1e-12)
        values.append(thinned_sum(levels, scale, (1, 2), off, arb(epsilon)))
        assert truth + off < values[-1] <= truth + (1 + arb(epsilon).exp()) * off * arb(1.01)
    assert not any(x < y for x, y in pairwise(values))


@pytest.mark.quick
@pytest.mark.parametrize("people", [1500, 40_000])
def test_datasets_of_binary_response_are_bounded_together(people: int) -> None:
    """V3, its last part: never below any of them, and close to the largest."""
    with ctx.workprec(128):
        for epsilon in (0.0, 1.0, 2.5):
            bar = _Bar.at(arb(1), arb(1), arb(epsilon / math.sqrt(people)), people)
            for low in (0, people // 2, people - 24):
                found = _Box.around(bar, low, low + 24)
                each = [bar.maximum(m, people - m) for m in range(low, low + 25)]
                assert found is not None
                assert not any(found < one for one in each)
                assert found <= max(each, key=float) * (1 + arb(1e-2 if people < 2000 else 1e-3))


@pytest.mark.quick
def test_sizes_that_fall_like_normal_ones_are_above_their_integral() -> None:
    """V5: between what the crude bound and the sum of sizes say."""
    source = random.Random(17)
    with ctx.workprec(128):
        for n in (50, 2000):
            for _ in range(3):
                law = random_law(source, 4)
                variable = Variable([ball(x) / 8 for x, _ in law], [ball(p) for _, p in law])
                for share in (0.5, 1.0, 3.0):
                    heights = _Heights(variable, n, share / math.sqrt(n * variable.cumulants(0.0)[2]), 1e-4)
                    close, normal = heights.close(arb(1)), heights.normal(arb(1))
                    assert close * arb(0.97) < normal <= heights.crude(arb(1))
                    assert n < 1000 or normal < 2 * close


@pytest.mark.quick
def test_vectors_are_the_curve_of_gaussian_noise_and_what_is_off() -> None:
    """T22: the integral of the two densities, and at most (1 + alpha) off above it, never rising."""
    shift, epsilon = arb(0.7), arb(0.4)
    with ctx.workprec(128):

        def gap(x: Any, _: Any) -> Any:
            return ((-(x**2) / 2).exp() - epsilon.exp() * (-((x - shift) ** 2) / 2).exp()) / (
                2 * arb.pi()
            ).sqrt()

        turn = shift / 2 - epsilon / shift  # where the densities are as e^epsilon to one
        truth = acb.integral(gap, acb(-30), acb(turn)).real
        found = noisy_vectors(shift, arb(0), epsilon)
        assert abs(found - truth) < arb(1e-25)
        off = arb(1e-4)
        values = [noisy_vectors(shift, off, arb(0.2 * i)) for i in range(40)]
        assert not any(a < b for a, b in pairwise(values))
        assert found < noisy_vectors(shift, off, epsilon) <= found + (1 + epsilon.exp()) * off * arb(1.01)
        assert values[-1] >= off


@pytest.mark.quick
def test_an_odd_number_of_sizes_is_above_its_integral_and_close_to_it() -> None:
    """V5 with one size as (size^2 + 1)/2: between the integrals of one size less and one more."""
    law = random_law(random.Random(13), 3)
    with ctx.workprec(128):
        variable = Variable([ball(x) for x, _ in law], [ball(p) for _, p in law])
        tau, heights = 0.3, dict[int, arb]()
        for n in (40, 41, 42):
            made = replace(TiltedSum.at(tau, variable, n, 1e-4), absolute=True)
            heights[n] = n * made.upper() / variable.moment(arb(tau)) ** n  # of sizes at most one
        assert heights[42] < heights[41] < heights[40] * (1 + arb(1e-9))


@pytest.mark.quick
@pytest.mark.parametrize("epsilon", [0.02, 0.06])
def test_crowds_are_above_every_dataset_of_binary_response(epsilon: float) -> None:
    """T16 against T12: the largest curve of all datasets, and not far above it."""
    n, keep = 3000, math.e / (math.e + 1.0)
    randomizer = sdp.FiniteRandomizer([[keep, 1.0 - keep], [1.0 - keep, keep]])
    certificate = sdp.Shuffled(randomizer, n=n, analysis="crowd").certificate(epsilon=epsilon, delta=0.5)
    with ctx.workprec(128):
        found = upper(certificate.to_dict()["rounds"][0]["curve"], arb(epsilon), arb(0))
        truth = upper({"kind": "binary", "n": n, "epsilon0": 1.0 - 1e-12}, arb(epsilon), arb(0))
        assert truth < found < arb(1.5) * truth


def test_laws_that_are_good_enough_are_bounded_by_what_is_known_of_them() -> None:
    """A bound of all laws is no smaller than that of those which were not looked at: chords go through it."""
    half = [arb(1) / 2, arb(1) / 2]
    laws = [Variable([arb(size), arb(-size)], half) for size in (4, 3, 2)]
    bounds = {law.values[0].str(): arb(bound) for law, bound in zip(laws, (0.125, 0.25, 0.375), strict=True)}

    def tried(law: Variable, theta: float) -> Iterator[arb]:
        yield bounds[law.values[0].str()]

    def crude(second: float, tilt: arb) -> arb:
        return arb(0.5) if second < 5.0 else arb(2)

    found = _Tried(Family.of(laws), tried, crude, arb(0.75)).largest(0.1)
    assert found >= 0.5
    assert _Tried(Family.of(laws), tried, crude, arb(0.4)).largest(0.1) >= 0.375
