"""Collecting: from a question to estimates with error bars and a privacy statement.

histogram, number, vector   protocols: what clients, shuffler and analyst agree on
ordered              protocols of ranges and quantiles; distribution: their results
table                joint tables of several attributes
strings              frequent strings of an unknown domain, cohort by cohort
plan                 a protocol that is handed on: fingerprint, signature, checks
_protocol            what all share: descriptions, tallies, the way from reports to a result
_accounted           the target of a plan, and what the accountant certifies of it
_several_messages    plans of several messages a person
_choice              which randomizer, with how much noise
_domain              raw values to inputs, or what does not belong
_fixed_point         numbers on a grid, and the variance of their sums
result, _intervals   what the analyst gets
statement            what may be said about privacy, and on what it rests
ledger               what was collected from whom, in a file that survives crashes and shows tampering
baselines            the same question without a shuffler, and with a trusted curator
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shuffledp.collecting._protocol import Protocol


def protocol_from_dict(description: dict[str, Any]) -> Protocol:
    """The protocol that ``to_dict`` described; not calibrated again, but certified again.

    A plan whose randomizer misses its own (epsilon, delta) is refused, and one with unknown keys. More
    checks, and signed plans: ``shuffledp.load_plan``.

    >>> from shuffledp import HistogramProtocol
    >>> survey = HistogramProtocol([1, 2, 3], epsilon=1.0, delta=1e-6, n=1000)
    >>> protocol_from_dict(survey.to_dict()) == survey
    True
    """
    from shuffledp.collecting._protocol import require_target

    protocol = described_protocol(description)
    require_target(protocol)
    return protocol


def described_protocol(description: Any) -> Protocol:
    """The protocol of a description that somebody vouches for: every field is checked, nothing certified."""
    from shuffledp.collecting._protocol import checked_description
    from shuffledp.collecting.histogram import HistogramProtocol
    from shuffledp.collecting.number import MeanProtocol, SumProtocol
    from shuffledp.collecting.ordered import QuantileProtocol, RangeProtocol
    from shuffledp.collecting.strings import PrefixProtocol
    from shuffledp.collecting.table import TableProtocol
    from shuffledp.collecting.vector import VectorMeanProtocol

    counts = (HistogramProtocol, PrefixProtocol, QuantileProtocol, RangeProtocol, TableProtocol)
    kinds = {kind.name: kind for kind in (*counts, MeanProtocol, SumProtocol, VectorMeanProtocol)}
    return kinds[checked_description(description, *kinds)].described(description)
