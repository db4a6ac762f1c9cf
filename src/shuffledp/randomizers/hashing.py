"""Optimised local hashing (Wang, Blocki, Li, Jha 2017) with an exactly universal family.

Let g be prime, and write categories with m digits in base g, g^(m-1) < k <= g^m. A hash function is a
vector a of m digits, hash(x) = a . x mod g. Two different categories collide for exactly a share 1/g of
all a, whatever they are. A user draws a uniformly (exactly, by rejection), and reports it with the
g-ary randomized response of hash(x); (p, p') are its exact probabilities of the truth and of any other
symbol. A report is the one number g a + symbol (a random offset of the hash would carry no information).

A report supports the categories that its function maps to its symbol: the own one with probability p,
any other with probability exactly 1/g. The best g is about e^epsilon0 + 1.

The law of the amplification variable (any two inputs), per function of weight g^-m. A report's smallest
probability is p', unless everybody's hash is its symbol; the digits of 0, 1, g, ..., g^(m-1) < k show that
this happens for a = 0 only:

    no collision (1 - 1/g)   x's symbol: own p, other p', clone p'                 X = E - a
                             that of x': own p', other p, clone p'                 X = 1 - a E
    collision, a > 0         their symbol: own = other = p, clone p'               X = E (1 - a)
    a = 0                    symbol 0: own = other = clone = p                     X = 1 - a
    every other symbol       own = other = clone = p'                              X = 1 - a
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from shuffledp import _validate
from shuffledp._randomness.uniform import uniform
from shuffledp._randomness.words import Words
from shuffledp.facts import AmplificationLaw, Blanket
from shuffledp.randomizers._categories import Counts, Integers, chunks, histogram
from shuffledp.randomizers.frequency import Bits, FrequencyRandomizer
from shuffledp.randomizers.kary import KaryRandomizedResponse

_MOST_SYMBOLS = 2**20


@dataclass(frozen=True, init=False)
class OptimisedLocalHashing(FrequencyRandomizer):
    """Report a random hash function and the randomized response of one's hash.

    ``symbols`` is the prime number g of hash values, by default the one of smallest variance.

    >>> oracle = OptimisedLocalHashing(k=1000, epsilon0=2.0)
    >>> oracle.symbols, oracle.digits
    (7, 4)
    """

    k: int
    epsilon0: float
    symbols: int
    response: KaryRandomizedResponse = field(repr=False)

    def __init__(self, k: int, epsilon0: float, symbols: int | None = None) -> None:
        asked = _validate.sampled_epsilon0(epsilon0)
        g = _best_prime(asked) if symbols is None else symbols
        g = _validate.count("symbols", g, least=2, most=_MOST_SYMBOLS)
        if not is_prime(g):
            raise ValueError(f"symbols must be a prime number, got {symbols!r}")
        whole = _validate.count("k", k, least=2, most=2**24)
        response = KaryRandomizedResponse(g, epsilon0=asked)
        _validate.assign(self, k=whole, epsilon0=response.realised_epsilon0, symbols=g, response=response)

    @property
    def digits(self) -> int:
        """m: how many digits a category has."""
        m = 1
        while self.symbols**m < self.k:
            m += 1
        return m

    def law(self) -> AmplificationLaw:
        """All pairs have the same law (see module)."""
        p, p_other = self.response._support_fractions()
        g, constant = self.symbols, Fraction(1, self.symbols**self.digits)
        apart, together = 1 - Fraction(1, g), Fraction(1, g) - constant
        rest = apart * (g - 2) * p_other + Fraction(g - 1, g) * p_other + constant * p
        return AmplificationLaw.merged(
            [
                (apart * p, apart * p_other, apart * p_other),
                (apart * p_other, apart * p, apart * p_other),
                (together * p, together * p, together * p_other),
                (rest, rest, rest),
            ]
        )

    def blanket(self) -> Blanket:
        """Every report has at least the probability of a wrong symbol."""
        p, p_other = self.response._support_fractions()
        g = self.symbols
        apart, same = 1 - Fraction(1, g), Fraction(1, g)
        rest = apart * (g - 2) * p_other + same * (g - 1) * p_other
        types = [
            (apart * p, apart * p_other, apart * p_other),
            (apart * p_other, apart * p, apart * p_other),
            (same * p, same * p, same * p_other),
            (rest, rest, rest),
        ]
        shape = f"uniform over functions of {self.digits} digits and {g} symbols"
        return Blanket(shape, AmplificationLaw.merged(types), float(g * p_other))

    def _three_categories(self) -> tuple[Fraction, tuple[int, int, int, int]] | None:
        # With two digits, 0, 1 and g have independent hashes (given the symbol, up to its shift).
        if self.digits < 2:
            return None
        p, p_other = self.response._support_fractions()
        g = self.symbols
        return p / p_other, ((g - 1) ** 3, (g - 1) ** 2, g - 1, 1)

    def third_law(self) -> AmplificationLaw | None:
        """Others on one line with the pair, where there are such: the fewest of them share a hash with it."""
        return self._in_line() or super().third_law()

    def _in_line(self) -> AmplificationLaw | None:
        """Three categories of which one difference is a multiple of another: all hashes are equal, or no two.

        So are any three with one digit; with more, any three of one line. With two symbols there are none."""
        p, p_other = self.response._support_fractions()
        g = self.symbols
        if g == 2 or self.k == 2:
            return None
        apart, rest = 1 - Fraction(1, g), Fraction(1, g) + (1 - Fraction(1, g)) * (g - 3) * p_other
        high, low = apart * p, apart * p_other
        return AmplificationLaw.merged([(high, low, low), (low, high, low), (low, low, high), (rest,) * 3])

    def _support_fractions(self) -> tuple[Fraction, Fraction]:
        p, _ = self.response._support_fractions()
        return p, Fraction(1, self.symbols)

    @property
    def outputs(self) -> int:
        return int(self.symbols ** (self.digits + 1))

    @property
    def _words_per_value(self) -> int:
        return 4

    def _sample(self, values: Integers, words: Words) -> Integers:
        g = np.uint64(self.symbols)
        functions = uniform(words, self.symbols**self.digits, values.size)
        categories = values.astype(np.uint64)
        hashes = np.zeros(values.size, dtype=np.uint64)
        for i in range(self.digits):
            place = np.uint64(self.symbols**i)
            hashes += (functions // place % g) * (categories // place % g)
        answers = self.response._sample(hashes % g, words)
        return np.asarray(functions * g + answers)

    def _supports(self, reports: Integers, values: Counts) -> Bits:
        known = reports.astype(np.int64)
        hashes = self._digits_of(known // self.symbols) @ self._digits_of(values).T
        return np.asarray(hashes.astype(np.int64) % self.symbols == (known % self.symbols)[:, None])

    def _count(self, reports: Integers) -> Counts:
        """Every different report once: its function at all categories, by one product of digits."""
        different, times = self._distinct(reports)
        functions, symbols = different // self.symbols, different % self.symbols
        categories = self._digits_of(np.arange(self.k)).T
        total = np.zeros(self.k)
        for part in chunks(different.size, 4 * self.k):
            # Whole numbers below 2^46: exact in floating point.
            hashes = (self._digits_of(functions[part]) @ categories).astype(np.int64)
            supported = hashes % self.symbols == symbols[part, None]
            total += times[part] @ supported.astype(np.float64)
        return total.astype(np.int64)

    def _distinct(self, reports: Integers) -> tuple[Counts, npt.NDArray[np.float64]]:
        """The different reports and how often each came."""
        if self.outputs <= max(1 << 16, len(reports)):
            times = histogram(reports, self.outputs)
            present = np.flatnonzero(times)
            return present, times[present].astype(np.float64)
        different, often = np.unique(reports.astype(np.int64), return_counts=True)
        return different, often.astype(np.float64)

    def _digits_of(self, numbers: Counts) -> npt.NDArray[np.float64]:
        places = np.array([self.symbols**i for i in range(self.digits)])
        return np.asarray(numbers[:, None] // places % self.symbols, dtype=np.float64)


def _best_prime(epsilon0: float) -> int:
    """The prime next to e^epsilon0 + 1 with the smallest variance for a rare category."""
    target = min(math.exp(epsilon0) + 1.0, float(_MOST_SYMBOLS))
    below = next(g for g in range(math.floor(target), 1, -1) if is_prime(g))
    above = next(g for g in range(math.ceil(target), 2 * math.ceil(target)) if is_prime(g))

    def spread(g: int) -> float:
        gap = math.expm1(epsilon0) * (g - 1.0) / (math.exp(epsilon0) + g - 1.0)
        return (g - 1.0) / gap**2  # q (1 - q) / (p - q)^2 with p - q = gap / g

    return min((g for g in (below, above) if g <= _MOST_SYMBOLS), key=spread)


def is_prime(number: int) -> bool:
    """Whether a number below 1,373,653 is prime.

    Odd ones up to there that pass the test of Miller and Rabin for the bases 2 and 3 are prime
    (Pomerance, Selfridge, Wagstaff 1980)."""
    if number < 4 or number % 2 == 0:
        return number in (2, 3)
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    return all(_passes(number, base, twos) for base in (2, 3))


def _passes(number: int, base: int, twos: int) -> bool:
    """Whether base^((number - 1) / 2^twos), squared ``twos`` times, comes to 1 as for a prime number."""
    power = pow(base, (number - 1) >> twos, number)
    if power == 1:
        return True
    for _ in range(twos):
        if power == number - 1:
            return True
        power = power * power % number
    return False
