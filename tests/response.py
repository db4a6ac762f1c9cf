"""k-ary randomized response as the accountant sees it, for tests."""

from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._witnesses import Witness, witness
from shuffledp.facts import response_crowds, response_probabilities


def krr_witnesses(k: int, epsilon0: float, n: int) -> list[Witness]:
    """Others hold a third symbol (k >= 3), or x."""
    return [witness(law, n) for law in response_crowds(k, epsilon0)]


def krr_blanket(k: int, epsilon0: float, n: int) -> AmplificationProfile:
    """k-ary randomized response against the weak adversary."""
    p, ep, gap = response_probabilities(k, epsilon0)
    rest = (k - 2) * p
    return AmplificationProfile(
        n, own=(ep, p, rest), other=(p, ep, rest), gap=(gap, -gap, 0.0), clone=(p, p, rest)
    ).without_empty_types()
