"""What was spent, and what may still be: against the accountant asked directly."""

import pytest

from shuffledp import KaryRandomizedResponse, LocalRandomizer, Shuffled
from shuffledp.errors import BudgetExceededError
from shuffledp.learning._budget import Budget, Spending, epsilon0_for, rounds_for
from shuffledp.randomizers.privunit import PrivUnit

pytestmark = pytest.mark.quick

ONE = Shuffled(LocalRandomizer(1.0), n=300).sampled_from(1000)


@pytest.mark.thorough
def test_rounds_for_is_the_last_number_of_rounds_within_the_target() -> None:
    most = rounds_for(ONE, epsilon=0.5, delta=1e-5)
    assert (most * ONE).upper_epsilon(delta=1e-5) <= 0.5
    # Certified numbers are within a thousandth of the analysis; a percent more rounds exceed it.
    assert ((most + most // 100 + 1) * ONE).upper_epsilon(delta=1e-5) > 0.5


def test_rounds_for_is_zero_when_one_round_is_too_much() -> None:
    assert rounds_for(ONE, epsilon=1e-3, delta=1e-5) == 0


@pytest.mark.thorough
def test_rounds_for_covers_a_whole_population_too() -> None:
    everybody = Shuffled(KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
    sampled = everybody.sampled_from(1000)
    assert rounds_for(everybody, epsilon=1.0, delta=1e-5) == rounds_for(sampled, epsilon=1.0, delta=1e-5)


@pytest.mark.thorough
def test_epsilon0_for_meets_the_target_and_a_larger_one_does_not() -> None:
    sizes = {"cohort": 500, "population": 2000}
    local = epsilon0_for(PrivUnit, dimension=10, epsilon=1.0, delta=1e-5, rounds=50, **sizes)

    def certified(epsilon0: float) -> float:
        one = Shuffled(PrivUnit(10, epsilon0), n=500).sampled_from(2000)
        return (50 * one).upper_epsilon(delta=1e-5)

    assert certified(local) <= 1.0 < certified(1.02 * local)


def test_the_spending_states_the_epsilon_of_its_rounds() -> None:
    spending = Spending(ONE).spend(3).spend()
    assert spending.spent == 4
    assert spending.epsilon(delta=1e-5) == (4 * ONE).epsilon(delta=1e-5)
    assert spending.upper_epsilon(delta=1e-5) == spending.epsilon(delta=1e-5).upper


def test_nothing_spent_is_perfectly_private() -> None:
    assert float(Spending(ONE).epsilon(delta=0.0)) == Spending(ONE).upper_epsilon(delta=0.0) == 0.0


def test_the_budget_is_spent_to_the_last_round_and_no_further() -> None:
    budget = Budget(epsilon=0.3, delta=1e-5)
    spending = Spending(ONE, budget=budget)
    left = spending.rounds_left
    spent = spending.spend(int(left))
    assert spent.rounds_left == 0
    assert spent.upper_epsilon(delta=1e-5) <= 0.3
    with pytest.raises(BudgetExceededError, match=f"after {int(left)} would exceed epsilon = 0.3"):
        spent.spend()


def test_the_budget_is_calibrated_once_and_asking_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spending = Spending(ONE, budget=Budget(epsilon=0.3, delta=1e-5))
    allowed = rounds_for(ONE, epsilon=0.3, delta=1e-5)
    monkeypatch.setattr("shuffledp.learning._budget.rounds_for", None)
    assert (spending.rounds_allowed, spending.rounds_left) == (allowed, allowed)
    assert spending.spend(2).spend().rounds_left == allowed - 3
    assert spending.having_spent(allowed + 7).rounds_left == 0


@pytest.mark.parametrize("rounds", [-1, 0.5])
def test_rounds_cannot_be_taken_back(rounds: float) -> None:
    with pytest.raises(ValueError, match="rounds must be"):
        Spending(ONE).spend(3).spend(rounds)
    with pytest.raises(ValueError, match="spent must be"):
        Spending(ONE, spent=rounds)


def test_without_a_budget_there_is_no_end() -> None:
    assert Spending(ONE).rounds_left == float("inf")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (-1.0, 1e-5), (1.0, 2.0), (1.0, -0.1)])
def test_impossible_budgets_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon must be in \(0|delta must be in"):
        Budget(epsilon, delta)
