"""To and from Google's ``dp_accounting`` (the extra ``interop``).

* ``to_dp_accounting``: a mechanism as a privacy loss distribution there, pessimistic: its curve lies
  above ours (connect the dots through certified upper values, Doroshenko et al. 2022), so whatever
  it is composed with there stays an upper bound, up to the rounding of that library (its plain
  Fourier transforms are good to about 1e-12 in delta).
* ``from_dp_accounting``: a privacy loss distribution from there as a mechanism of ours.
* ``ShuffleAccountant``: an accountant with that library's interface, for code that wants to switch.

>>> import shuffledp as sdp
>>> from shuffledp.interop.dp_accounting import ShuffleAccountant, ShuffledDpEvent
>>> daily = sdp.Shuffled(sdp.KaryRandomizedResponse(k=16, epsilon0=4.0), n=1_000_000)
>>> accountant = ShuffleAccountant().compose(ShuffledDpEvent(daily), 30)
>>> accountant.get_epsilon(1e-8) == (30 * daily).epsilon(delta=1e-8).upper
True
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from shuffledp import _validate
from shuffledp._certified.rounding import Floats
from shuffledp.accounting._curves.foreign_loss import KnownLossProfile, LossLaw
from shuffledp.accounting._ends.several_rounds import discretise
from shuffledp.accounting._rounds.loss import LossDistribution, Samples, dominating
from shuffledp.accounting.mechanism import Composition, KnownLoss, Mechanism, Shuffled
from shuffledp.errors import CoarserBoundWarning

try:
    import attr
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.pld import pld_pmf, pld_privacy_accountant, privacy_loss_distribution
except ImportError as error:
    raise ImportError("dp-accounting is needed for this: pip install 'shuffledp[interop]'") from error

_POINTS = 160  # speed and tightness: of the curve
_RESOLUTION, _STRIDE = 5e-4, 4  # speed: relative, of a discretised composition; points it skips
_FLOOR = 1e-20  # tightness: losses of a smaller delta become infinite; that library resolves about 1e-12
_MOST_LOSSES = 1 << 24  # speed: lattice points
_USUAL = 1e-4  # that library's default
_FINE = 50.0  # tightness: grid points in a deviation of the loss
_COARSE = 8.0  # below that many the distribution is visibly looser


def to_dp_accounting(mechanism: Mechanism, *, discretization: float | None = None) -> Any:
    """A ``PrivacyLossDistribution`` on multiples of ``discretization`` that dominates ``mechanism``.

    By default that is 1e-4, or a smaller power of ten that resolves the mechanism's losses; what is composed
    there must have one discretization. It covers both directions of substitution neighbours."""
    deviation = mechanism.gaussian_limit().upper
    if discretization is None:
        finest = math.floor(math.log10(deviation / _FINE)) if deviation > 0.0 else 0
        spacing = min(_USUAL, 10.0**finest)
    else:
        spacing = _validate.positive("discretization", discretization)
        if spacing * _COARSE > deviation > 0.0:
            warnings.warn(
                f"discretization={spacing:g} is coarse for losses of about {deviation:.2g}: the distribution "
                f"is looser than the mechanism; take at most {deviation / _FINE:.1g}",
                CoarserBoundWarning,
                stacklevel=3,
            )
    law = _dominating(mechanism, spacing)
    index = law.index.astype(np.int64)
    size = int(index[-1] - index[0]) + 1
    masses = np.zeros(size)
    masses[index - index[0]] = law.mass
    pmf = pld_pmf.DensePLDPmf(spacing, int(index[0]), masses, law.infinity, True)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


def _dominating(mechanism: Mechanism, spacing: float) -> LossDistribution:
    reach = mechanism.upper_epsilon(delta=_FLOOR) if any(c for _, c in mechanism.parts) else 0.0
    if math.isinf(reach):
        reach = _finite_reach(mechanism)
    last = max(1, math.ceil(reach / spacing))
    if last > _MOST_LOSSES:
        raise ValueError(
            f"discretization must be at least {reach / _MOST_LOSSES:.3g} for losses up to "
            f"{reach:.3g}, got {spacing!r}"
        )
    index = np.unique(np.round(np.linspace(0.0, last, _POINTS)))
    # The curve falls: what bounds it at one point bounds it further on.
    upper = np.minimum.accumulate(_curve(mechanism, index * spacing))
    nothing = np.zeros(index.size)
    return dominating(Samples(index, upper, upper, nothing, nothing), spacing)


def _curve(mechanism: Mechanism, epsilon: Floats) -> Floats:
    """Upper values of the mechanism's curve; of a composition, from one discretisation for all."""
    rounds = mechanism._rounds()
    if (len(rounds) == 1 and rounds[0][1] == 1) or not rounds:
        return np.asarray(mechanism.upper_delta(epsilon=epsilon))
    pairs = discretise(rounds, _FLOOR, _RESOLUTION, _STRIDE)
    return pairs.above.delta(epsilon)[1]


def _finite_reach(mechanism: Mechanism) -> float:
    """Where a curve that never falls to the floor is about flat."""
    epsilon = 1e-3
    while epsilon < 600.0:
        near, far = mechanism.upper_delta(epsilon=np.array([epsilon, 2.0 * epsilon]))
        if near <= far * (1.0 + 1e-3):
            break
        epsilon *= 2.0
    return epsilon


def from_dp_accounting(distribution: Any) -> KnownLoss:
    """A mechanism of ours from a pessimistic ``PrivacyLossDistribution``.

    Its neighbouring relation is that of whoever made the distribution: compose it with shuffled
    rounds only if that is the replacement of one record."""
    if not isinstance(distribution, privacy_loss_distribution.PrivacyLossDistribution):
        raise TypeError(f"distribution must be a dp_accounting PrivacyLossDistribution, got {distribution!r}")
    pmfs = [distribution._pmf_remove]
    if not distribution._symmetric:
        pmfs.append(distribution._pmf_add)
    for pmf in pmfs:
        if not pmf._pessimistic_estimate:
            raise ValueError("distribution must be pessimistic: an optimistic one is no upper bound")
    return KnownLoss(KnownLossProfile(tuple(_law(pmf.to_dense_pmf()) for pmf in pmfs)))


def _law(pmf: Any) -> LossLaw:
    masses = np.asarray(pmf._probs, dtype=np.float64)
    # Noise of Fourier transforms may be negative: raising it to zero is safe.
    masses = np.maximum(masses, 0.0)
    loss = pmf._discretization * (pmf._lower_loss + np.arange(masses.size, dtype=np.float64))
    used = masses > 0.0
    return LossLaw(loss[used], masses[used], float(pmf._infinity_mass))


def poisson_gaussian_epsilon(noise_multiplier: float, rate: float, steps: int, delta: float) -> float:
    """Of ``steps`` sums over Poisson batches of this rate with Gaussian noise, by dp-accounting."""
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise_multiplier))
    return float(pld_privacy_accountant.PLDAccountant().compose(step, steps).get_epsilon(delta))


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """A mechanism of ours as an event there."""

    mechanism: Mechanism


class ShuffleAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """Certified accountant of shuffled rounds with dp_accounting's interface.

    It takes ``ShuffledDpEvent``, ``SampledWithoutReplacementDpEvent`` of one whose n is the sample size,
    every event that dp_accounting's own ``PLDAccountant`` takes for the same neighbours (Gaussian, Poisson
    sampled Gaussian, randomized response, ...), Laplace and discrete Laplace noise, and compositions of all
    these. Neighbours differ in the data of one user (replace one); events of which no loss is known then
    (sampled Laplace noise, mixtures of Gaussians) are refused."""

    def __init__(self) -> None:
        super().__init__(privacy_accountant.NeighboringRelation.REPLACE_ONE)
        self._total: Mechanism = Composition(())
        self._private = True

    @property
    def mechanism(self) -> Mechanism:
        """Everything composed so far."""
        return self._total

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.NoOpDpEvent):
            return None
        if isinstance(event, dp_event.SelfComposedDpEvent):
            return self._maybe_compose(event.event, count * event.count, do_compose)
        if isinstance(event, dp_event.ComposedDpEvent):
            errors = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((error for error in errors if error is not None), None)
        if isinstance(event, dp_event.NonPrivateDpEvent):
            self._private = self._private and not (do_compose and count)
            return None
        mechanism = _mechanism(event)
        if isinstance(mechanism, str):
            return self.CompositionErrorDetails(invalid_event=event, error_message=mechanism)
        if do_compose and count:
            if mechanism is None:
                self._compose_loss(event, count)
            else:
                self._total = self._total + count * mechanism
        return None

    def _compose_loss(self, event: Any, count: int) -> None:
        """An event of theirs, repeated: they know how to compose it with itself."""
        if isinstance(event, _LAPLACE):
            loss = _replaced(event)
        else:
            known = _known().compose(event, count)
            loss, count = None if known._contains_non_dp_event else known._pld, 1
        self._private = self._private and loss is not None
        if loss is not None:
            self._total = self._total + count * from_dp_accounting(loss)

    def get_epsilon(self, target_delta: float) -> float:
        """The certified upper end of epsilon at ``target_delta``."""
        if self._private:
            return self._total.upper_epsilon(delta=target_delta)
        return 0.0 if _validate.probability("target_delta", target_delta) == 1.0 else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """The certified upper end of delta at ``target_epsilon``."""
        return float(self._total.upper_delta(epsilon=target_epsilon)) if self._private else 1.0


_LAPLACE = (dp_event.LaplaceDpEvent, dp_event.DiscreteLaplaceDpEvent)


def _replaced(event: Any) -> Any:
    """The loss of Laplace noise where a record is replaced: the sum moves by twice what one record adds, as
    that library counts it for Gaussian noise. None without noise."""
    if isinstance(event, dp_event.LaplaceDpEvent):
        scale = event.noise_multiplier
        return privacy_loss_distribution.from_laplace_mechanism(scale, sensitivity=2.0) if scale else None
    rate, far = event.noise_parameter, 2 * event.sensitivity
    return privacy_loss_distribution.from_discrete_laplace_mechanism(rate, sensitivity=far) if rate else None


def _known() -> Any:
    return pld_privacy_accountant.PLDAccountant(privacy_accountant.NeighboringRelation.REPLACE_ONE)


def _mechanism(event: Any) -> Mechanism | str | None:
    """The event as a mechanism of ours; None if dp_accounting knows it; or why it is neither."""
    if isinstance(event, ShuffledDpEvent):
        return event.mechanism
    if isinstance(event, dp_event.SampledWithoutReplacementDpEvent):
        inner = event.event.mechanism if isinstance(event.event, ShuffledDpEvent) else None
        if not isinstance(inner, Shuffled) or inner.population is not None:
            return "only one shuffled round can be sampled without replacement"
        if inner.n != event.sample_size:
            return f"the shuffled round has n = {inner.n}, not the sample size {event.sample_size}"
        return inner.sampled_from(event.source_dataset_size)
    if isinstance(event, _LAPLACE) or _known().supports(event):
        return None
    return (
        f"{type(event).__name__} is no shuffled round, and dp_accounting knows no loss of it for the "
        "replacement of one record: compose ShuffledDpEvent(from_dp_accounting(a distribution of yours))"
    )
