"""Sums of doubles in an order that depends on nothing but their number: one function of the terms."""

from __future__ import annotations

from shuffledp._certified.rounding import Floats


def sum_by_halves(terms: Floats) -> Floats:
    """Sums over the last axis, in ceil(log2 width) steps, whatever the other axes; overwrites terms."""
    width = terms.shape[-1]
    while width > 1:
        half = (width + 1) // 2
        terms[..., : width - half] += terms[..., half:width]
        width = half
    return terms[..., 0]
