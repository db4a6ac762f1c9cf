"""Random cohorts as published: the curve of Koskela, Heikkilä, Honkela 2023, Lemma 7 (T5).

For a cohort that is a share g of the population and the curve h of its own round, alpha >= 1:
g h(1 + (alpha - 1)/g). Substitution neighbours; the adversary of h. Sound, and far larger in epsilon
than what ``sampled_from`` certifies (T5', docs/proofs/cohorts.md), here 129 times:

>>> import shuffledp as sdp
>>> one = sdp.Shuffled(sdp.LocalRandomizer(epsilon0=8.0), n=10**4).sampled_from(10**6)
>>> [round(each.upper_epsilon(delta=1e-6), 4) for each in (koskela_2023_cohort(one), one)]
[3.4248, 0.0265]
"""

from __future__ import annotations

from shuffledp.accounting._analyses import profile_of
from shuffledp.accounting._curves.subsampled import SubsampledProfile
from shuffledp.accounting.mechanism import KnownLoss, Shuffled


def koskela_2023_cohort(part: Shuffled) -> KnownLoss:
    """The round under the published curve of cohorts, of the same analysis of the cohort's own round."""
    return KnownLoss(SubsampledProfile(profile_of(part.facts, part.n, part.analysis), part.fraction))
