"""Guesses cannot make an answer wrong: curves with absurd hints are refused or still certified.

Every curve inside a mechanism gets hints that are random and far off: scales and starts from 1e-12 to 1e6,
tilts times 10^+-6, lattices far too coarse and far too fine, cuts, jumps and thresholds anywhere. Each
answer must agree with the certified enclosure that the usual hints give (small crowds, fine tolerance):
its upper end is not below the known lower end, its lower end not above the known upper end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp._certified import lattice_sum
from shuffledp.accounting import calibration
from shuffledp.accounting._curves import crowd
from shuffledp.accounting._curves.all_pairs import FiniteBlanketProfile
from shuffledp.accounting._curves.approximate import ApproximateProfile
from shuffledp.accounting._curves.combined import BestProfile
from shuffledp.accounting._curves.crowd import CrowdProfile
from shuffledp.accounting._curves.many_laws import ManyLaws
from shuffledp.accounting._curves.near import NearProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting._ends.upper import delta_of, epsilon_of
from shuffledp.accounting._hints.crowds import CrowdHints
from shuffledp.accounting._hints.inverse import Path
from shuffledp.accounting._hints.jump_split import Split
from shuffledp.accounting._hints.lattices import LatticeHints
from shuffledp.accounting._hints.starts import Hints, RidgeCells
from shuffledp.accounting._hints.tilt import Tilts
from shuffledp.accounting._rounds.compose import ComposedLoss, compose
from shuffledp.accounting._rounds.loss import LossDistribution
from shuffledp.accounting._rounds.round import Rounds
from shuffledp.errors import NoCertificateError

KNOWN_TO = 1e-3
ROUNDING = 1e-9
MOST_SECONDS = 30.0
EPSILONS = np.array([0.0, 0.03, 0.3, 1.1])
DELTAS = (0.3, 1e-2, 1e-5)

# Absurd hints may leave nothing but a coarser bound, which says so: it must hold as well.
pytestmark = pytest.mark.filterwarnings("ignore::shuffledp.errors.CoarserBoundWarning")


@dataclass(frozen=True)
class Far:
    """Random finite numbers of all sizes, of either sign where asked."""

    rng: np.random.Generator

    def off(self, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Factors: somewhat off, or so far that no limit on the work comes near to being reached."""
        return self.rng.choice([1e-9, 1e-6, 0.4, 2.5, 30.0, 1e6, 1e9], shape)

    def anything(self, shape: tuple[int, ...] = ()) -> np.ndarray:
        signed = self.rng.normal(0.0, 1.0, shape) * self.off(shape)
        return np.where(self.rng.random(shape) < 0.1, 0.0, signed)


class AbsurdLattices(LatticeHints):
    """Sometimes the usual guess times something, sometimes no guess at all."""

    def __init__(self, far: Far) -> None:
        self.far = far

    def _moved(self, usual: Any) -> Any:
        shape, kind = np.shape(usual), self.far.rng.random()
        if kind < 0.4:
            return usual
        return usual * self.far.off(shape) if kind < 0.8 else self.far.anything(shape)

    def tilt(self, x: np.ndarray, w: np.ndarray, n: Any) -> np.ndarray:
        return self._moved(super().tilt(x, w, n))

    def split(self, x: np.ndarray, w: np.ndarray, types: int, n: int) -> Split | None:
        if self.far.rng.random() < 0.3:
            return super().split(x, w, types, n)
        rows = np.arange(len(x))
        column = self.far.rng.integers(x.shape[1], size=len(x))
        inside = x[rows, column] * self.far.rng.choice([1.0, 1.0 - 1e-9, 0.5], len(x))
        b = np.where(self.far.rng.random(len(x)) < 0.8, inside, self.far.anything((len(x),)))
        total = self.far.off((len(x),)) * self.far.rng.choice([1e-9, 1.0], len(x))
        return Split(b, total, self.far.rng.random(len(x)) < 0.8)

    def cut(self, x: np.ndarray, w: np.ndarray, budget: np.ndarray) -> np.ndarray:
        return self._moved(super().cut(x, w, budget))

    def spacing(
        self, x: np.ndarray, w: np.ndarray, tilted: np.ndarray, n: Any, resolution: float
    ) -> np.ndarray:
        return self._moved(super().spacing(x, w, tilted, n, resolution))

    def decisive(self, x: np.ndarray, w: np.ndarray, n: int, budget: np.ndarray) -> np.ndarray:
        return self._moved(super().decisive(x, w, n, budget))

    def decided_spacing(
        self, x: np.ndarray, w: np.ndarray, origin: np.ndarray, n: int | np.ndarray, resolution: float
    ) -> np.ndarray:
        return self._moved(super().decided_spacing(x, w, origin, n, resolution))

    def score_spacing(
        self,
        x: np.ndarray,
        w: np.ndarray,
        origin: np.ndarray,
        n: int | np.ndarray,
        resolution: float,
        usual: np.ndarray,
    ) -> np.ndarray:
        return self._moved(super().score_spacing(x, w, origin, n, resolution, usual))

    def jump_cap(self, x: np.ndarray, w: np.ndarray, b: float, n: int, budget: float) -> float:
        return float(self._moved(super().jump_cap(x, w, b, n, budget)))

    def jump_spacing(self, x: np.ndarray, w: np.ndarray, origin: float, n: int, resolution: float) -> float:
        return float(self._moved(super().jump_spacing(x, w, origin, n, resolution)))

    def jump_tilt(self, bulk: Any, jumps: Any, many: int, few: int, threshold: int) -> np.ndarray:
        return np.asarray(self._moved(super().jump_tilt(bulk, jumps, many, few, threshold)))


class AbsurdCrowds(CrowdHints):
    """Any pool, any weights in any order, any tilt, any law first."""

    def __init__(self, far: Far) -> None:
        self.far = far

    def pool_sizes(self, n: int, variance: float, guess: float, moved: float = 0.0) -> Iterator[int]:
        while True:
            yield int(self.far.rng.choice([-5, 0, 1, 3, n // 20, n // 4, 10 * n]))

    def weights(self, scale: float, most: float) -> np.ndarray:
        return most * self.far.anything((int(self.far.rng.integers(12)),))

    def last_weight(self, cost: np.ndarray, guess: float) -> int:
        return int(self.far.rng.integers(-2, cost.size + 5))

    def leaders(self, laws: Any, n: int) -> np.ndarray:
        return self.far.rng.permutation(len(laws.x))[: self.far.rng.integers(1, 9)]

    def normal_tail(self, second: float, n: int, growth: float) -> float:
        return float(self.far.off())

    def tilt(self, values: np.ndarray, masses: np.ndarray, *given: Any, **how: Any) -> tuple[float, float]:
        theta, guess = super().tilt(values, masses, *given, **how)
        return theta * float(self.far.rng.choice([-1.0, 0.0, 0.3, 1.0, 4.0, 1e40])), guess * float(
            self.far.off()
        )

    def tilts(self, laws: Any, n: int) -> np.ndarray:
        tilts = super().tilts(laws, n)
        return tilts * self.far.rng.choice([-1.0, 0.0, 0.2, 1.0, 5.0, 1e40], tilts.shape)

    def steady(self, theta: float, values: Callable[[np.ndarray], np.ndarray]) -> float:
        return super().steady(theta, values) * float(self.far.rng.choice([-1.0, 0.5, 1.0, 2.0]))


class AbsurdTilts(Tilts):
    """Tilts and points anywhere, neighbours in any company."""

    far: Far

    def at(self, epsilon: np.ndarray) -> np.ndarray:
        return super().at(epsilon) * self.far.rng.choice([-1.0, 0.0, 0.4, 1.0, 2.5, 1e9], epsilon.shape)

    def alike(self, epsilon: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        for part in np.array_split(self.far.rng.permutation(epsilon.size), 2):
            yield part, float(self.at(epsilon[part[:1]])[0]) if part.size else 1.0

    def steep_enough(self, theta: float) -> float:
        return float(self.far.anything())

    def for_delta(self, delta: float, closely: bool = False) -> tuple[float, float]:
        return tuple(self.far.anything((2,)).tolist())


@dataclass(frozen=True, kw_only=True)
class AbsurdHints(Hints):
    """Those of any kind of curve at once."""

    far: Far
    lattice: LatticeHints
    crowd: CrowdHints

    def ridge(self, ratio: float, theta: float, *given: float) -> RidgeCells:
        blocks, step = (float(self.far.rng.choice(some)) for some in ([1.0, 30.0, 1e9], [0.01, 1.0, 50.0]))
        return RidgeCells(blocks, step, int(self.far.rng.integers(1, 40)))

    def start(self, delta: float, most: float) -> float:
        return float(self.far.rng.choice([0.0, 1e-12, 1e6, float(self.far.anything())]))

    def aim(self, *given: Any) -> float:
        return super().aim(*given) * float(self.far.rng.choice([-1.0, 0.0, 0.7, 1.0, 1.0, 1.3, 1e9]))

    def between(self, low: float, high: float) -> float:
        return super().between(low, high) * float(self.far.rng.choice([-1.0, 0.0, 0.5, 1.0, 1.0, 2.0, 1e9]))

    def spacing(self, *given: Any) -> float:
        return super().spacing(*given) * float(self.far.rng.choice([-1.0, 0.0, 0.6, 1.0, 3.0, 1e3, 1e-9]))

    def tilts(self, loss: ComposedLoss) -> AbsurdTilts:
        found = AbsurdTilts(loss)
        found.far = self.far
        return found

    def lowest(self, curve: Callable[[np.ndarray], np.ndarray]) -> float:
        return float(self.far.anything())

    def turn(self, off: float) -> float:
        return float(self.far.anything())

    def promise(self, epsilon: np.ndarray) -> np.ndarray:
        return self.far.anything(epsilon.shape)

    def tilt(self, ratio: np.ndarray, keep: float, lie: float, users: float) -> np.ndarray:
        return ratio * self.far.off(ratio.shape) + self.far.rng.choice([0.0, 1e-12, 3.0], ratio.shape)

    def alike(self, theta: float, keep: float, lie: float, users: float) -> float:
        return theta * float(self.far.off())

    def threshold(
        self, ratio: np.ndarray, keep: float, lie: float, m: np.ndarray, others: np.ndarray
    ) -> np.ndarray:
        return m * keep + others * lie + self.far.rng.normal(0.0, 5.0, m.shape)


def with_absurd_hints(value: Any, far: Far) -> Any:
    """A round or curve all of whose curves have absurd hints."""
    if isinstance(value, tuple):
        return tuple(with_absurd_hints(part, far) for part in value)
    if not is_dataclass(value) or isinstance(value, Hints):
        return value
    inside = {
        part.name: with_absurd_hints(getattr(value, part.name), far)
        for part in fields(value)
        if isinstance(getattr(value, part.name), (tuple, PrivacyProfile))
    }
    changed: Any = replace(value, **inside)  # type: ignore[type-var]
    if isinstance(changed, FiniteBlanketProfile):  # any law may lead
        laws = [with_absurd_hints(law, far) for law in changed.laws]
        vars(changed)["laws"] = [laws[i] for i in far.rng.permutation(len(laws))]
    if not isinstance(changed, PrivacyProfile):
        return changed
    scale = changed.hints.scale * float(far.off()) + float(far.rng.choice([0.0, 0.0, 1e-12, 1e6]))
    lattice, crowds = AbsurdLattices(far), AbsurdCrowds(far)
    hints = AbsurdHints(scale, bool(far.rng.random() < 0.2), far=far, lattice=lattice, crowd=crowds)
    return changed.with_hints(hints)


MATRIX = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
RARE = [[0.7, 0.299, 1e-3], [1e-3, 0.299, 0.7], [0.4, 0.3, 0.3]]
MECHANISMS: dict[str, Callable[[], Any]] = {
    "k-ary": lambda: sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=600),
    "two k-ary": lambda: sdp.Shuffled(sdp.KaryRandomizedResponse(k=3, epsilon0=1.0), n=2),
    "binary": lambda: sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.5), n=300),
    "blanket": lambda: sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.5), n=900, analysis="blanket"),
    "strong": lambda: sdp.Shuffled(sdp.KaryRandomizedResponse(k=5, epsilon0=2.0), n=100, analysis="strong"),
    "matrix": lambda: sdp.Shuffled(sdp.FiniteRandomizer(MATRIX), n=500),
    "rare reports": lambda: sdp.Shuffled(sdp.FiniteRandomizer(RARE), n=450),
    "unary": lambda: sdp.Shuffled(sdp.OptimisedUnaryEncoding(k=6, epsilon0=2.0), n=700),
    "Laplace": lambda: sdp.Shuffled(sdp.DiscreteLaplace(epsilon0=2.0, levels=4), n=500),
    "Gaussian": lambda: sdp.Shuffled(sdp.DiscreteGaussian(0.8, levels=3), n=450),
    "local": lambda: sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0), n=100),
    "delta0": lambda: sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0, delta0=1e-9), n=100),
    "sum": lambda: sdp.MixedSum(n=200, levels=100, scale=100.0, messages=10, modulus=2**24),
    "vectors": lambda: sdp.MixedVectors(
        n=1000, dimension=10, farthest=200**2, variance=72.0, messages=9, modulus=2**28
    ),
    "few shares": lambda: sdp.MixedSum(n=200, levels=100, scale=100.0, messages=10, modulus=2**24, sized=250),
    "total variation": lambda: sdp.Shuffled(sdp.LocalRandomizer(epsilon0=2.0, total_variation=0.3), n=800),
    "cohort": lambda: sdp.Shuffled(sdp.KaryRandomizedResponse(k=4, epsilon0=2.0), n=600).sampled_from(5000),
}


OF_THE_BOUND = CrowdProfile | NearProfile | ApproximateProfile
"""Where hints choose which of several bounds is taken: their lines are below that one, not below another."""
SLOW = ("binary", "Gaussian")
"""Minutes of refused sums in searches; their curves are tested by themselves."""


def certified(question: Callable[[], Any]) -> Any:
    """The answer, or None where there is no certificate; never for long."""
    begun = time.process_time()
    try:
        # A tenth of a second at most for a sum, instead of ten.
        with (
            np.errstate(all="ignore"),
            patch.object(lattice_sum, "MAX_TERMS", 1 << 21),
            patch.object(lattice_sum, "MAX_POINTS", 1 << 18),
        ):
            return question()
    except NoCertificateError:
        return None
    finally:
        assert time.process_time() - begun < MOST_SECONDS


def assert_agrees(found: tuple[Any, Any], known: tuple[Any, Any]) -> None:
    assert np.all(np.asarray(found[1]) >= np.asarray(known[0]) * (1.0 - ROUNDING) - 1e-290)
    assert np.all(np.asarray(found[0]) <= np.asarray(known[1]) * (1.0 + ROUNDING) + 1e-290)


def assert_certified(one: Any, count: int, seeds: range, deltas: tuple[float, ...], tolerance: float) -> int:
    """How many answers were certified."""
    usual: Rounds = [(one.round, count)]
    known_delta = delta_of(usual, EPSILONS, KNOWN_TO if count == 1 else tolerance)
    known = {delta: epsilon_of(usual, delta, KNOWN_TO if count == 1 else tolerance) for delta in deltas}
    answered = 0
    for seed in seeds:
        rounds = [(with_absurd_hints(one.round, Far(np.random.default_rng(seed))), count)]
        for delta in deltas:
            found = certified(partial(epsilon_of, rounds, delta, tolerance))
            if found is not None:
                answered += 1
                assert_agrees(found, known[delta])
        found = certified(partial(delta_of, rounds, EPSILONS, tolerance))
        if found is not None:
            answered += 1
            assert_agrees(found, known_delta)
    return answered


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "rare reports" else [])
        for name in MECHANISMS
        if name not in SLOW
    ],
)
def test_one_round_with_absurd_hints_is_certified_or_refused(name: str) -> None:
    seeds = range(1 if name in ("matrix", "rare reports") else 2)
    assert_certified(MECHANISMS[name](), 1, seeds, DELTAS, 1e-2)


@pytest.mark.parametrize("name", ["k-ary", "local", "cohort"])
def test_rounds_with_absurd_hints_are_certified_or_refused(name: str) -> None:
    print("ANS", name, assert_certified(MECHANISMS[name](), 3, range(4), (1e-2,), 5e-2))


def curves(profile: PrivacyProfile) -> tuple[PrivacyProfile, ...]:
    """Each analysis by itself: where one has no certificate, the lines of "best" are the next one's."""
    if isinstance(profile, SubsampledProfile):
        return tuple(SubsampledProfile(base, profile.fraction) for base in curves(profile.base))
    return profile.profiles if isinstance(profile, BestProfile) else (profile,)


@pytest.mark.parametrize("name", MECHANISMS)
def test_curves_with_absurd_hints_stay_on_their_sides(name: str) -> None:
    """No upper value is below what the usual hints give from below, and no line above."""
    known = MECHANISMS[name]().lower_delta(epsilon=EPSILONS)
    for usual in curves(MECHANISMS[name]().round.profile):
        high, lines = usual.both(EPSILONS, KNOWN_TO)
        own = isinstance(usual, OF_THE_BOUND)
        for seed in range(2 if name in SLOW else 12):
            crowd._at.cache_clear()  # it knows curves, not their hints
            absurd = with_absurd_hints(usual, Far(np.random.default_rng(seed)))
            upper = certified(partial(absurd.upper, EPSILONS, 1e-2))
            if upper is not None:
                assert np.all(upper >= (known if own else lines.value) * (1.0 - ROUNDING))
            found = certified(partial(absurd.support, EPSILONS, 1e-2))
            if found is not None and not own:
                assert np.all(found.value <= high * (1.0 + ROUNDING) + 1e-300)
                assert np.all(found.slope_low <= found.slope_high)


def test_many_laws_with_absurd_tilts_stay_above_each() -> None:
    at = np.array([0.0, 0.1, 0.4])
    for n in (3, 400):
        profile = FiniteBlanketProfile(sdp.FiniteRandomizer(RARE).table, n)
        least = np.max([law.support(at, 1e-3).value for law in profile.laws], axis=0)
        for seed in range(10):
            many = replace(ManyLaws.of(profile.laws), hints=AbsurdCrowds(Far(np.random.default_rng(seed))))
            assert (many.largest(at) >= least).all()


def test_some_absurd_hints_are_answered() -> None:
    """Else nothing was tested: a start that is off costs time, and no certificate."""
    assert assert_certified(MECHANISMS["local"](), 1, range(4), DELTAS, 1e-2) > 4


def test_composed_losses_with_absurd_tilts_are_certified_or_refused() -> None:
    law = LossDistribution(0.1, np.array([-3.0, 0.0, 3.0]), np.array([0.3, 0.3, 0.399]), 1e-3)
    usual, at = compose([(law, 40)], Tilts), np.array([0.0, 0.61, 0.65, 2.0, 2.03])
    low, high = usual.delta(at)
    answered = 0
    for seed in range(30):
        far = Far(np.random.default_rng(seed))

        hints = AbsurdHints(1.0, far=far, lattice=AbsurdLattices(far), crowd=AbsurdCrowds(far))
        absurd = compose([(law, 40)], hints.tilts)
        for delta in (0.1, 0.045):
            for side in (absurd.upper_epsilon, absurd.lower_epsilon):
                found = certified(partial(side, delta, 1e-2))
                if found is not None:
                    least, most = (float(end[0]) for end in usual.delta(np.array([found])))
                    assert least <= delta if side == absurd.upper_epsilon else most >= delta or found == 0.0
        for some in (slice(1), slice(1, 3), slice(3, 4)):
            found = certified(partial(absurd.delta, at[some]))
            if found is not None:
                answered += 1
                assert_agrees(found, (low[some], high[some]))
    assert answered > 8


class AbsurdPath(Path):
    """The next value anywhere: on the wrong side, beyond every end, the same again."""

    far = Far(np.random.default_rng(0))

    def start(self, first: float) -> float:
        return first * float(self.far.off())

    def after(self, value: float, found: float, aim: float) -> float:
        self.slope = float(self.far.off())
        return super().after(value, found, aim) * float(self.far.rng.choice([-1.0, 0.0, 0.8, 1.0, 2.0, 1e9]))


@pytest.mark.parametrize("solve_for", ["epsilon0", "n", "rounds"])
def test_calibrations_along_absurd_paths_meet_their_target_or_are_refused(
    solve_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the steps were, the answer is evaluated: with hints that are as usual, it meets the target."""
    given: dict[str, Any] = {"k": 4, "n": 600, "rounds": 2, "epsilon": 0.7, "delta": 1e-3}
    kind: Any = sdp.KaryRandomizedResponse
    if solve_for != "epsilon0":
        del given["k"], given[solve_for]
        kind = kind(k=4, epsilon0=1.5)
    best = sdp.calibrate(kind, solve_for=solve_for, **given).value
    monkeypatch.setattr(calibration, "Path", AbsurdPath)
    answered = 0
    for _ in range(2):
        try:
            found = sdp.calibrate(kind, solve_for=solve_for, tolerance=1e-2, **given)
        except (ValueError, ArithmeticError):
            continue
        answered += 1
        assert found.mechanism.epsilon(delta=1e-3).lower <= found.epsilon.upper <= 0.7
        assert found.value >= best if solve_for == "n" else found.value <= best * 1.001
    assert answered
