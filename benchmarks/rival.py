"""dp-accounting (Google) as a baseline: its composition of the distributions that we compose.

It is given our discretised pairs, already made, and does the rest: `self_compose` or `compose`,
then `get_epsilon_for_delta`. Its convolution is a plain double-precision FFT, so its deltas carry
an absolute error; `reference_delta` composes the same pairs in extended precision, after an
exponential tilt that makes the error relative, and tells who is right.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.fft
from dp_accounting.pld.pld_pmf import DensePLDPmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from report import Check, short
from timing import Task

from shuffledp.accounting._ends.several_rounds import attempts, discretise
from shuffledp.accounting._rounds.compose import ComposedLoss
from shuffledp.accounting._rounds.loss import LossDistribution

NAME = "dp-accounting, same grid"


def discretised(mechanism: Any, delta: float) -> ComposedLoss:
    """The distributions that shuffledp composes for the upper end of mechanism.epsilon(delta)."""
    rounds = [(part.round, count) for part, count in mechanism.parts]
    tolerance = 1e-3
    resolution, stride = next(attempts(rounds, tolerance))
    return discretise(rounds, delta, resolution, stride).above


def composition(composed: ComposedLoss) -> Any:
    """dp-accounting's composition of the same parts."""
    parts = (rounds_of(law, count) for law, count in composed.parts)
    return functools.reduce(lambda a, b: a.compose(b), parts)


def rounds_of(law: LossDistribution, count: int) -> Any:
    """dp-accounting's self-composition of one of our distributions."""
    first = int(law.index[0])
    masses = np.zeros(int(law.index[-1]) - first + 1)
    masses[law.index.astype(int) - first] = law.mass
    pmf = DensePLDPmf(law.spacing, first, masses, law.infinity, True)
    return PrivacyLossDistribution(pmf, pmf_add=None).self_compose(count)


def epsilon_task(composed: ComposedLoss, delta: float) -> Task:
    """epsilon(delta) by dp-accounting, from the discretised parts on."""
    return lambda i: composition(composed).get_epsilon_for_delta(delta)


def reference_delta(composed: ComposedLoss, epsilon: float) -> float:
    """delta(epsilon) of the composed pairs by a tilted FFT in extended precision.

    Each law is weighed by e^{theta loss}, which moves the sum's mean to about epsilon, where the
    positive part lives; the window of the FFT is 30 standard deviations of the tilted sum.
    """
    theta = float(composed.hints.at(np.array([epsilon]))[0])
    _, mean, variance = composed.cumulants(theta)
    h = np.longdouble(composed.spacing)
    size = int(2 ** np.ceil(np.log2(30 * np.sqrt(variance) / composed.spacing + 1024)))
    transform = np.ones(size, dtype=np.clongdouble)
    log_scale = np.longdouble(0)
    for law, count in composed.parts:
        tilted = law.mass * np.exp(np.longdouble(theta) * h * law.index)
        circle = np.zeros(size, dtype=np.longdouble)
        np.add.at(circle, law.index.astype(int) % size, tilted / tilted.sum())
        transform *= scipy.fft.fft(circle) ** count
        log_scale += count * np.log(tilted.sum())
    first = int(mean / composed.spacing) - size // 2
    index = first + np.arange(size)
    density = scipy.fft.ifft(transform).real[index % size]
    above = h * index > epsilon
    loss, density = h * index[above], density[above]
    terms = density * np.exp(log_scale - theta * loss) * -np.expm1(epsilon - loss)
    return float(terms.sum()) + composed.infinity


def checks(one: Any) -> Iterator[Check]:
    """Tiny deltas and many rounds: our enclosure, the reference, and what dp-accounting says."""
    for T, delta in ((1000, 1e-8), (1000, 1e-16), (1000, 1e-30), (10**5, 1e-8), (10**5, 1e-12)):
        composed = discretised(T * one, delta)
        theirs = composition(composed)
        epsilon = composed.upper_epsilon(delta, 1e-3)
        low, high = (float(end[0]) for end in composed.delta(np.array([epsilon])))
        truth = reference_delta(composed, epsilon)
        off = theirs.get_delta_for_epsilon(epsilon) / truth - 1
        yield Check(
            f"{short(T)} rounds, delta = {short(delta)}: the certified delta of the composed pair "
            "holds an extended-precision reference",
            f"relative width {high / low - 1:.0e}; dp-accounting's delta is off by {off:+.1e}, "
            f"its epsilon is {theirs.get_epsilon_for_delta(delta):.4g}, ours {epsilon:.4g}",
            low <= truth <= high,
        )
