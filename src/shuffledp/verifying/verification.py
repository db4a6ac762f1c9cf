"""``verify``: a certificate's claim derived again, by other mathematics and in ball arithmetic.

Nothing is shared with the accountant's numerics: no lattice, no buckets, no floating-point error analysis.
One round is the sum of Theorem V1 (or all outcomes, or all datasets), several are convolved in whole numbers
(Theorem V2), on the accountant's own grid, of which every point is derived again. Arb keeps the errors
(docs/proofs/verifier.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shuffledp._digits import rounded_up, written
from shuffledp._files import PathLike
from shuffledp._json import canonical
from shuffledp._lazy import needed
from shuffledp.verifying.certificate import Certificate, HasRounds

_FEWEST_BITS, _MOST_BITS = 96, 4096


@dataclass(frozen=True)
class Verification:
    """What came of it: true if the claim was derived again; ``reason`` says why not.

    ``found``: the upper bound of delta(epsilon) that was derived, rounded up."""

    epsilon: float
    delta: float
    verified: bool
    found: float
    bits: int
    reason: str = ""

    def __bool__(self) -> bool:
        return self.verified

    def __str__(self) -> str:
        at = f"delta({rounded_up(self.epsilon)})"
        if self.verified:
            return f"verified: {at} <= {rounded_up(self.found)} by Arb at {self.bits} bits"
        return f"not verified: {at} <= {written(self.delta)}: {self.reason}"


def verify(
    certificate: Certificate | dict[str, Any] | PathLike, *, bits: int = 256, of: HasRounds | None = None
) -> Verification:
    """Derive the claim of a certificate (or of its file) again, at ``bits`` bits; needs the extra ``verify``.

    What a certificate states of its rounds is believed if it fits together; ``of`` a mechanism of yours, they
    must be the rounds of that. A certificate that cannot be read is a ValueError; a claim that is not
    confirmed is a false answer."""
    if not _FEWEST_BITS <= bits <= _MOST_BITS:
        raise ValueError(f"bits must be in [{_FEWEST_BITS}, {_MOST_BITS}], got {bits!r}")
    needed("flint", extra="verify")
    from shuffledp.verifying._claim import derived

    if isinstance(certificate, dict):
        certificate = Certificate(canonical(certificate))
    elif not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    if of is not None and not certificate.is_about(of.stated()):
        reason = f"the certificate is about other rounds than {of!r}"
        return Verification(certificate.epsilon, certificate.delta, False, 1.0, bits, reason)
    try:
        found, reason = derived(certificate.to_dict(), bits)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"the certificate is not complete: {type(error).__name__} {error}") from error
    except ArithmeticError as error:
        raise ValueError(f"the certificate has numbers that are out of range: {error}") from error
    return Verification(certificate.epsilon, certificate.delta, not reason, found, bits, reason)
