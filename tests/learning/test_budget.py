"""What was spent, and what may still be: against the accountant asked directly."""

import pytest

from shuffledp import KaryRandomizedResponse, LocalRandomizer, Shuffled
from shuffledp.errors import BudgetExceededError
from shuffledp.learning._budget import Budget, Ledger, epsilon0_for, rounds_for
from shuffledp.randomizers.privunit import PrivUnit

ONE = Shuffled(LocalRandomizer(1.0), n=300).sampled_from(1000)


def test_rounds_for_is_the_last_number_of_rounds_within_the_target():
    most = rounds_for(ONE, epsilon=0.5, delta=1e-5)
    assert (most * ONE).upper_epsilon(delta=1e-5) <= 0.5
    # Certified numbers are within a thousandth of the analysis; a percent more rounds exceed it.
    assert ((most + most // 100 + 1) * ONE).upper_epsilon(delta=1e-5) > 0.5


def test_rounds_for_is_zero_when_one_round_is_too_much():
    assert rounds_for(ONE, epsilon=1e-3, delta=1e-5) == 0


def test_rounds_for_covers_a_whole_population_too():
    everybody = Shuffled(KaryRandomizedResponse(k=4, epsilon0=1.0), n=1000)
    sampled = everybody.sampled_from(1000)
    assert rounds_for(everybody, epsilon=1.0, delta=1e-5) == rounds_for(
        sampled, epsilon=1.0, delta=1e-5
    )


def test_epsilon0_for_meets_the_target_and_a_larger_one_does_not():
    sizes = {"cohort": 500, "population": 2000}
    local = epsilon0_for(PrivUnit, dimension=10, epsilon=1.0, delta=1e-5, rounds=50, **sizes)

    def certified(epsilon0):
        one = Shuffled(PrivUnit(10, epsilon0), n=500).sampled_from(2000)
        return (50 * one).upper_epsilon(delta=1e-5)

    assert certified(local) <= 1.0 < certified(1.02 * local)


def test_the_ledger_states_the_epsilon_of_its_rounds():
    ledger = Ledger(ONE).spend(3).spend()
    assert ledger.spent == 4
    assert ledger.epsilon(delta=1e-5) == (4 * ONE).epsilon(delta=1e-5)
    assert ledger.upper_epsilon(delta=1e-5) == ledger.epsilon(delta=1e-5).upper


def test_nothing_spent_is_perfectly_private():
    assert float(Ledger(ONE).epsilon(delta=0.0)) == Ledger(ONE).upper_epsilon(delta=0.0) == 0.0


def test_the_budget_is_spent_to_the_last_round_and_no_further():
    budget = Budget(epsilon=0.3, delta=1e-5)
    ledger = Ledger(ONE, budget=budget)
    left = ledger.rounds_left
    spent = ledger.spend(int(left))
    assert spent.rounds_left == 0
    assert spent.upper_epsilon(delta=1e-5) <= 0.3
    with pytest.raises(BudgetExceededError, match=f"after {int(left)} would exceed epsilon = 0.3"):
        spent.spend()


@pytest.mark.parametrize("rounds", [-1, 0.5])
def test_rounds_cannot_be_taken_back(rounds):
    with pytest.raises(ValueError, match="rounds must be"):
        Ledger(ONE).spend(3).spend(rounds)
    with pytest.raises(ValueError, match="spent must be"):
        Ledger(ONE, spent=rounds)


def test_without_a_budget_there_is_no_end():
    assert Ledger(ONE).rounds_left == float("inf")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (-1.0, 1e-5), (1.0, 2.0), (1.0, -0.1)])
def test_impossible_budgets_are_refused(epsilon, delta):
    with pytest.raises(ValueError, match=r"epsilon must be in \(0|delta must be in"):
        Budget(epsilon, delta)
