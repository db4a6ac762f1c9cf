"""Balle, Bell, Gascon, Nissim 2019, Section 4: the error of the summation protocol against n.

Users hold x in [0, 1], round it at random to {0, ..., k}/k, and send it through (k+1)-ary randomized
response with blanket mass g; the analyzer adds and debiases. With f the fraction of x k, r = f (1-f)/k^2,

    variance = n ((1-g)(r + x^2) + g (2k+1)/(6k) - ((1-g) x + g/2)^2)/(1-g)^2,

exactly. Theorem 4.1: n^(1/3) up to constants; Theorem 4.2: no single-message protocol is below
``least_single_message_error``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shuffledp._certified.rounding import Floats
from shuffledp.accounting.mechanism import Shuffled
from shuffledp.collecting._gaussian import analytic_gaussian_sigma
from shuffledp.collecting.number import least_single_message_error
from shuffledp.errors import OutsideRangeError
from shuffledp.literature.closed_forms import balle_2019_krr_gamma
from shuffledp.papers._result import Curve, Panel, Result, Setting, item, whole_numbers
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse

EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class Plan:
    """k + 1 fixed points and the blanket mass."""

    n: int
    k: int
    gamma: float

    def variance(self, x: Floats) -> Floats:
        """Of the estimated sum, if everybody holds x."""
        k, g = self.k, self.gamma
        fraction = x * k - np.floor(x * k)
        square = (1.0 - g) * (fraction * (1.0 - fraction) / k**2 + x**2)
        square = square + g * (2 * k + 1) / (6.0 * k)
        return np.asarray(self.n * (square - ((1.0 - g) * x + 0.5 * g) ** 2) / (1.0 - g) ** 2)

    @property
    def worst(self) -> tuple[float, float]:
        """(x, standard error) where the error is largest: at ends or in the middle of a step."""
        x = np.concatenate([np.arange(self.k + 1) / self.k, (np.arange(self.k) + 0.5) / self.k])
        found = self.variance(x)
        return float(x[found.argmax()]), math.sqrt(float(found.max()))

    @property
    def bound(self) -> float:
        """The paper's bound of the standard error."""
        square = (1.0 - self.gamma) / (4.0 * self.k**2) + 0.5 * self.gamma
        return math.sqrt(self.n * square) / (1.0 - self.gamma)


def published(n: int) -> Plan | None:
    """c from Theorem 3.1 and k = (n/c)^(1/3), or None where the theorem gives no gamma below 1."""
    c = max(14.0 * math.log(2.0 / DELTA) / EPSILON**2, 27.0 / EPSILON)
    k = max(1, math.ceil((n / c) ** (1.0 / 3.0)))
    try:
        return Plan(n, k, balle_2019_krr_gamma(k + 1, n, EPSILON, DELTA))
    except OutsideRangeError:
        return None


def certified(n: int, width: int) -> Plan:
    """The number of fixed points with the smallest error among those tried, gamma calibrated."""
    middle = max(1.0, 0.3 * n ** (1.0 / 3.0))
    tried = sorted({max(1, round(middle * 1.3**i)) for i in range(-width, width + 1)})
    plans = [_calibrated(n, k) for k in tried]
    return min(plans, key=lambda plan: plan.worst[1])


def _calibrated(n: int, k: int) -> Plan:
    """The smallest blanket mass seen (to a part in 1000) whose certified delta is small enough."""
    low, high = min(0.5, 0.01 * (k + 1) / n), 0.999
    while high > low * 1.001:
        gamma = math.sqrt(low * high)
        survey = KaryRandomizedResponse(k=k + 1, gamma=gamma)
        enough = Shuffled(survey, n=n, analysis="blanket").upper_delta(epsilon=EPSILON) <= DELTA
        low, high = (low, gamma) if enough else (gamma, high)
    return Plan(n, k, high)


def simulated(plan: Plan, runs: int, seed: int = 2019) -> float:
    """Root mean squared error where everybody holds the worst value."""
    rng = np.random.default_rng((seed, plan.n))
    randomizer = KaryRandomizedResponse(k=plan.k + 1, gamma=plan.gamma)
    x = plan.worst[0]
    errors = []
    for _ in range(runs):
        up = rng.random(plan.n) < x * plan.k - math.floor(x * plan.k)
        reports = randomizer.randomize(math.floor(x * plan.k) + up, rng=rng)
        mean = float(np.mean(reports, dtype=np.float64)) / plan.k
        errors.append(plan.n * ((mean - 0.5 * plan.gamma) / (1.0 - plan.gamma) - x))
    return math.sqrt(float(np.mean(np.square(errors))))


@item
def summation(setting: Setting) -> Result:
    """The error of a sum against n, its bounds and n^(1/6)."""
    sizes = np.array(whole_numbers(10**3, 10**8, setting.choose(16, 6)), dtype=np.float64)
    old = [published(int(n)) for n in sizes]
    new = [certified(int(n), setting.choose(4, 1)) for n in sizes]
    few = [plan for plan in new if plan.n <= setting.choose(10**6, 10**5)]
    few = few[:: max(1, len(few) // 5)]
    measured = [simulated(plan, setting.choose(200, 50)) for plan in few]
    ours = np.array([plan.worst[1] for plan in new])
    theirs = [plan.worst[1] if plan else math.nan for plan in old]
    known = {
        "with Theorem 3.1's γ, exact error": theirs,
        "the paper's bound of it": [plan.bound if plan else math.nan for plan in old],
        "Theorem 4.2: nobody is below": [least_single_message_error(int(n), EPSILON, DELTA) for n in sizes],
        "local model, same ε": [_local(int(n)) for n in sizes],
        "curator, Gaussian noise": np.full(sizes.size, _central()),
    }
    curves = [
        Curve("calibrated by the accountant", "certified", sizes, ours, hue="certified"),
        *(
            Curve(name, "sound", sizes, values, hue=hue)
            for (name, values), hue in zip(
                known.items(), ("printed", "strong", "clones", "analytic", "Renyi"), strict=True
            )
        ),
        Curve("simulated", "check", [plan.n for plan in few], measured),
        Curve("⁶√n, doubled", "guide", sizes, 2.0 * ours[-1] * (sizes / sizes[-1]) ** (1.0 / 6.0)),
    ]
    title, y_label = "sum of n numbers in [0, 1], (1, 10⁻⁶)-DP", "standard error of the sum"
    large = sizes >= 10**5
    numbers = {
        "epsilon": EPSILON,
        "slope": np.polyfit(np.log(sizes[large]), np.log(ours[large]), 1)[0],
        "calibrated": ours[-1],
        "published": theirs[-1],
        "ratio": ours[-1] / least_single_message_error(int(sizes[-1]), EPSILON, DELTA),
    }
    return Result([Panel(title, curves, LABELS["n"], y_label, x_log=True)], numbers)


def _local(n: int) -> float:
    """The same randomizer without a shuffler, epsilon0 = epsilon: two fixed points are best."""
    return Plan(n, 1, 2.0 / (math.exp(EPSILON) + 1.0)).worst[1]


def _central() -> float:
    return analytic_gaussian_sigma(epsilon=EPSILON, delta=DELTA)
