"""Slow, clear reference computations that the tests compare shuffledp with.

Nothing in here imports shuffledp, and everything is written from definitions:

- `hockey`: hockey sticks of pairs of finite laws, and of their products, in exact rationals;
- `brute`: the shuffled mechanism itself, every dataset of a few users, with rounds and cohorts;
- `pairs`: the published dominating pairs, enumerated for a few users;
- `balls`: the same pairs for many users, in ball arithmetic (an interval that holds the value);
- `products`: compositions of those pairs in double precision, for many outcomes or many rounds;
- `golden`: the stored reference values;
- `claims`: what it means for a bound to be sound, and to be tight.
"""
