"""Blanket messages (T19) by their definition: all messages of all people enumerated."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp.accounting.blanket_counts import BlanketCounts

pytestmark = pytest.mark.quick

Seen = dict[tuple[int, ...], Fraction]


def view(held: tuple[int, ...], k: int, slots: int, clone: Fraction) -> Seen:
    """The law of the multiset of all messages; k is an empty one."""
    chances = [clone] * k + [1 - k * clone]
    seen: Seen = {}
    for drawn in product(range(k + 1), repeat=len(held) * slots):
        key = tuple(sorted((*held, *drawn)))
        seen[key] = seen.get(key, Fraction(0)) + math.prod((chances[d] for d in drawn), start=Fraction(1))
    return seen


@pytest.mark.parametrize(
    ("n", "k", "slots", "clone"), [(2, 2, 2, 3), (3, 3, 1, 5), (2, 3, 1, 3), (4, 2, 1, 7)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_both_ends_are_the_truth_of_every_pair_of_neighbours(
    n: int, k: int, slots: int, clone: int, epsilon: float
) -> None:
    alpha = Fraction(math.exp(epsilon))
    found = BlanketCounts(n=n, slots=slots, clone=1 / clone).delta(epsilon=epsilon)
    for others in product(range(k), repeat=n - 1):
        p, q = (view((x, *others), k, slots, Fraction(1, clone)) for x in (0, 1))
        for one, other in ((p, q), (q, p)):
            terms = (mass - alpha * other.get(key, Fraction(0)) for key, mass in one.items())
            exact = float(sum((term for term in terms if term > 0), Fraction(0)))
            assert found.lower <= exact * (1 + 1e-12)
            assert exact <= found.upper * (1 + 1e-12)
            assert found.upper == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(("n", "slots", "clone"), [(1, 1, 0.1), (3, 1, 0.2), (2, 2, 0.25), (300, 1, 0.02)])
def test_nothing_is_hidden_where_nobody_sends_the_other_category(n: int, slots: int, clone: float) -> None:
    alone = (1.0 - clone) ** (n * slots)  # no random message is of the other category
    one = BlanketCounts(n=n, slots=slots, clone=clone)
    for rounds, lost in ((1, alone), (3, 1.0 - (1.0 - alone) ** 3)):
        below = (rounds * one).epsilon(delta=lost * (1.0 - 1e-9))
        assert below.lower == below.upper == math.inf
    assert one.epsilon(delta=alone * 1.05 if alone < 0.9 else 0.99).upper < math.inf


def test_forty_three_random_messages_a_category_do_where_the_literature_sets_464() -> None:
    one = BlanketCounts(n=10**6, slots=1, clone=43e-6)
    bound = one.epsilon(delta=1e-6)
    assert 0.99 < bound.lower <= bound.upper < 1.0
    assert (3 * one).epsilon(delta=1e-6).upper < 1.9
    assert BlanketCounts(n=2 * 10**6, slots=1, clone=43e-6).epsilon(delta=1e-6).upper < bound.upper


@pytest.mark.parametrize(
    ("change", "words"), [({"clone": 0.6}, "clone must be in"), ({"slots": 0}, "slots must be")]
)
def test_parameters_out_of_range(change: dict[str, Any], words: str) -> None:
    parameters: dict[str, Any] = {"n": 10, "slots": 1, "clone": 0.1}
    with pytest.raises(ValueError, match=words):
        BlanketCounts(**(parameters | change))


def test_messages_are_the_truth_and_as_many_random_ones_as_is_said() -> None:
    pets = sdp.BlanketMessages(k=5, rate=0.5, slots=3)
    rows = np.asarray(pets.randomize([4] * 20_000, rng=np.random.default_rng(8))).reshape(-1, 4)
    assert (rows[:, 0] == 4).all()
    counts = np.bincount(rows[:, 1:].ravel(), minlength=6)
    expected = 60_000 * np.array([0.1] * 5 + [0.5])
    assert (((counts - expected) ** 2) / expected).sum() < 45.0  # five degrees of freedom
    estimates = pets.estimate(pets.support(rows.ravel()), 20_000)
    spread = np.sqrt(pets.variance([0, 0, 0, 0, 20_000], 20_000))
    assert (np.abs(estimates - [0, 0, 0, 0, 20_000]) < 6 * spread).all()
    assert pets.clone == pytest.approx(0.1)
    with pytest.raises(ValueError, match="rate must be at least"):
        sdp.BlanketMessages(k=2**40, rate=1e-9, slots=1)


@pytest.mark.thorough
def test_a_survey_takes_several_messages_where_that_errs_less() -> None:
    pets = sdp.HistogramProtocol(["cat", "dog", "fish"], epsilon=1.0, delta=1e-6, n=10_000, messages="auto")
    assert pets.messages == 2
    truth = ["cat"] * 5000 + ["dog"] * 3000 + ["fish"] * 2000
    result = pets.analyze(pets.randomize(truth))
    assert result.n == 10_000
    assert (np.abs(result.counts - [5000, 3000, 2000]) < 7 * result.standard_errors).all()
    assert result.standard_errors[0] < 6.6
    assert result.poisoning(10)[0] == pytest.approx(20.0)
    assert "rests on the shuffler" in result.privacy.text
    assert sdp.load_plan(pets.to_dict()) == pets
    with pytest.raises(ValueError, match="messages of every person"):
        pets.analyze(np.asarray(pets.randomize(truth))[1:])
    one = sdp.HistogramProtocol(["cat", "dog", "fish"], epsilon=1.0, delta=1e-6, n=10_000)
    assert one.messages == 1
    few = sdp.HistogramProtocol(list(range(1000)), epsilon=1.0, delta=1e-6, n=1000, messages="auto")
    assert few.messages == 1
    many = sdp.HistogramProtocol(list(range(50)), epsilon=1.0, delta=1e-6, n=100, messages=40)
    assert many.messages == 40
