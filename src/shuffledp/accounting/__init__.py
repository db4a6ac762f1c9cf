"""The accountant: from what is known of a randomizer to a certified epsilon or delta.

    Facts (shuffledp.facts)
      |
      |    mechanism      Shuffled, sums and multiples of rounds, cohorts: what a user composes and asks
      |    shuffled_batches   central DP-SGD over fixed batches: no shuffle model, but the same confusion
      |    mixed_sum, mixed_vectors, blanket_counts   rounds of several messages a person; cohort: of a part
      |    groups         rounds of people with different randomizers that share a blanket
      |    calibration    the same questions backwards: which epsilon0, n, rounds or cohort will do
      |    _analyses      the one table of analyses, and which of them these facts allow
      |    _witnesses     neighbouring datasets that the facts' concrete laws describe
      v
    _curves  ------------->  _rounds  --------------->  _ends  ----->  Bound(lower, upper)
    one round as a curve     the curve as losses        where the curve of all
    alpha -> H_alpha, from   on a grid; losses of       rounds passes a level:
    above and from below     independent rounds         the upper end from above,
      ^                      add up                     the lower one from below
      :                         ^                          ^
      :.........................:..........................:
    _hints    saddle points, tilts, splits, first guesses: passed in, and checked by who takes them

Arrows are the way of a question. Imports go the other way, and down to ``shuffledp._certified``, where
sums, tails and roundings are certified. Nothing here imports a randomizer, a sampler or a protocol.

What must be right: ``_curves``, ``_rounds``, ``_ends`` and ``_certified``. Upper values are rounded up, lower
ones down; where that cannot be done with a proof, they raise ``NoCertificateError``. What cannot hurt:
``_hints``. Any value of theirs gives a valid answer or a refusal; a poor one costs time.

A new analysis is a curve in ``_curves`` and a row in ``_analyses`` (see CONTRIBUTING.md). The walk of one
question through these rooms is in docs/architecture.md, the theorems in docs/mathematics.md.
"""
