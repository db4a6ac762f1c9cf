"""Every rounding of the kernel counts: certified answers are charged the units that are recorded (T8)."""

import json
from pathlib import Path

import numpy as np
from certified.charged import LARGE, RECORD, TRUE, asked_with, changed, units

import shuffledp

RELATIVE = 1e-5 if int(np.__version__.split(".")[0]) > 1 else 0.1
"""NumPy 1 adds in another order: of sums that end by their size, a few terms more or less."""


def test_answers_are_charged_the_units_that_are_recorded_and_both_ends_move_outward() -> None:
    source = Path(shuffledp.__path__[0]).parent
    found = units(asked_with(TRUE, source), asked_with(LARGE, source))
    assert all(min(ends) > -1.0 for ends in found.values())
    assert [name for name, ends in found.items() if max(ends) <= 2.0] == ["underflowing tails"]
    assert found.keys() == json.loads(RECORD.read_text(encoding="utf-8")).keys()
    assert changed(found, RELATIVE) == []  # on purpose? python tests/certified/charged.py --write
