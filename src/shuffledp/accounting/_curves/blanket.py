"""The privacy blanket of k-ary randomized response and of randomizers of known total variation.

Balle, Bell, Gascon, Nissim 2019; for k-ary randomized response this is exactly the weak adversary
of Koskela et al. 2023 (who does not learn which reports are random). Upper bounds for substitution
neighbours; the adversary knows everybody else's data. All laws here are symmetric in x, x', so
each is a whole profile. With p = 1/(e^epsilon0 + k - 1), E = e^epsilon0, the law of X is

    k-ary:  E - a (p),  1 - a E (p),  1 - a ((k - 2) p),  0 (1 - k p);
    total variation (E - 1) p, p <= 1/(E + 1):  E - a (p),  1 - a E (p),  E (1 - a) ((1 - (E+1) p)/E).
"""

from __future__ import annotations

import math

from shuffledp._certified.rounding import CALL, up
from shuffledp.accounting._curves.combined import LargestProfile
from shuffledp.accounting._curves.law_sum import AmplificationProfile
from shuffledp.accounting._curves.profile import PrivacyProfile
from shuffledp.facts import AmplificationLaw, response_probabilities


def krr_blanket(k: int, epsilon0: float, n: int) -> AmplificationProfile:
    """k-ary randomized response against the weak adversary."""
    p, ep, gap = response_probabilities(k, epsilon0)
    rest = (k - 2) * p
    return AmplificationProfile(
        n, own=(ep, p, rest), other=(p, ep, rest), gap=(gap, -gap, 0.0), clone=(p, p, rest)
    ).without_empty_types()


def law_blanket(law: AmplificationLaw, n: int) -> PrivacyProfile:
    """A randomizer that knows the law of its own worst pair."""
    pair = AmplificationProfile(n, law.own, law.other, law.gap, law.clone).without_empty_types()
    return pair if pair.symmetric else LargestProfile(pair.directions)


def tv_universal(epsilon0: float, total_variation: float, n: int) -> AmplificationProfile:
    """Any epsilon0-LDP randomizer whose reports differ by at most this total variation."""
    if epsilon0 == 0.0:
        return AmplificationProfile(n, own=(1.0,), other=(1.0,), gap=(0.0,), clone=(1.0,))
    # total_variation = (E - 1) p, rounded up: the pair is monotone in p.
    most = up(math.tanh(0.5 * epsilon0), operations=CALL, tiny=0.0)
    gap = min(up(total_variation, operations=1, tiny=0.0), most)
    ep = gap / -math.expm1(-epsilon0)
    p = ep * math.exp(-epsilon0)
    rest = max(0.0, 1.0 - p - ep)
    return AmplificationProfile(
        n,
        own=(ep, p, rest),
        other=(p, ep, rest),
        gap=(gap, -gap, 0.0),
        clone=(p, p, rest * math.exp(-epsilon0)),
    ).without_empty_types()
