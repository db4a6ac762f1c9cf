"""Guesses: nothing in here can make an answer wrong.

A curve carries its hints (``PrivacyProfile.hints``; ``with_hints`` exchanges them), and the certified code
asks them where to look and what to try: ``hints.start(delta, most)``, ``hints.scale``,
``hints.lattice.tilt(x, w, n)``. Whatever finite number comes back, the answer is certified or refused
(tests/accounting/test_absurd_hints.py): good hints make it tight and fast, and that is all they do.

* ``starts``: where a curve is likely to pass a level, and what comes next; where it is lowest;
* ``saddle``: the tilt that suits a sum of iid numbers, and an estimate of its positive part;
* ``tilt``: the lattice of composed losses, and tilts for their sums;
* ``influence``: where the curves of rounds matter for their sum;
* ``lattices``: lattice, cuts and jumps of such a sum, from the estimates of ``jump_split``;
* ``crowds``: pools, weights and tilts of the crowd theorem, and which laws to begin with.

This room imports ``_certified`` only; ``_curves`` and ``_ends`` import it.
"""
