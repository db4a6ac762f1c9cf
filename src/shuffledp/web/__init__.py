"""The calculator: one question format, JSON in and JSON out, for the page and whoever else asks.

``answer`` is the only place with logic. ``shuffledp web`` serves the page in ``page/`` and answers its
questions; the public site runs the same package in the browser.

>>> reply = answer({"krr": 5, "epsilon0": 3, "n": "20,000", "rounds": 12, "delta": "1e-7"})
>>> reply["epsilon"]["shown"], reply["meaning"][:49]
('0.61311', 'Had one person given other answers in every round')
>>> answer({"krr": 5, "epsilon0": 3, "n": 0, "delta": 1e-7})["refusal"]
'People in one round must be a whole number from 1 to 2^53, got 0.'
"""

from shuffledp.web._answer import answer as answer

__all__ = ["answer"]
