"""Hockey sticks of the dominating pairs for many users, in ball arithmetic.

Every function returns a ball: an interval that holds the exact value, rounding errors included.
Sums over many outcomes leave out the improbable ones; the mass left out is itself computed as a
ball, and the interval is widened by the most it could have contributed.

Numbers are floats (taken exactly), whole numbers, balls, or decimal strings. The working
precision is far beyond the values: relative accuracy down to about 1e-120. Where a comparison is
undecided because two numbers agree to all digits, the term in question is below TINY, which the
interval is widened by.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from flint import arb, arb_poly, ctx

ctx.prec = 640
TINY = arb(10) ** -140  # outcomes less probable than this are left out, and accounted for

Number = arb | float | int | str


def ball(x: Number) -> arb:
    """The number as a ball."""
    return x if isinstance(x, arb) else arb(x)


def exp(x: Number) -> arb:
    """e^x."""
    return ball(x).exp()


def clones(n: int, epsilon0: Number, alpha: Number) -> arb:
    """The clones of 2022."""
    E = exp(epsilon0)
    return two_reports(n, 2 / (E + 1), E / (E + 1), ball(alpha))


def clones_2021(n: int, epsilon0: Number, alpha: Number) -> arb:
    """The clones of 2021."""
    E = exp(epsilon0)
    return two_reports(n, 1 / E, E / (E + 1), ball(alpha))


def strong(n: int, k: int, gamma: Number, alpha: Number) -> arb:
    """The strong adversary of k-ary randomized response."""
    gamma, alpha = ball(gamma), ball(alpha)
    truthful = two_reports(n, 2 * gamma / k, arb(1), alpha)
    return (1 - gamma) * truthful + gamma * _positive(1 - alpha)


def blanket(n: int, k: int, epsilon0: Number, alpha: Number, tiny: Number = TINY) -> arb:
    """The blanket (weak adversary) of k-ary randomized response."""
    E, a = exp(epsilon0), ball(alpha)
    p = 1 / (E + k - 1)
    return mean_positive_part(
        n, ((E - a, p), (1 - a * E, p), (1 - a, (k - 2) * p), (arb(0), 1 - k * p)), tiny
    )


def universal(n: int, epsilon0: Number, total_variation: Number, alpha: Number, tiny: Number = TINY) -> arb:
    """The pair for any randomizer of known total variation."""
    E, a = exp(epsilon0), ball(alpha)
    p = ball(total_variation) / (E - 1)
    r = (1 - (E + 1) * p) / E
    return mean_positive_part(
        n, ((E - a, p), (1 - a * E, p), (E * (1 - a), r), (arb(0), 1 - 2 * p - r)), tiny
    )


def all_hold_a_third_value(n: int, k: int, epsilon0: Number, alpha: Number, tiny: Number = TINY) -> arb:
    """k-ary randomized response itself (k >= 3) when all others hold one third value."""
    E, a = exp(epsilon0), ball(alpha)
    p = 1 / (E + k - 1)
    return mean_positive_part(
        n, ((E - a, p), (1 - a * E, p), ((1 - a) / E, E * p), (1 - a, (k - 3) * p)), tiny
    )


def all_hold_the_value(n: int, k: int, epsilon0: Number, alpha: Number, tiny: Number = TINY) -> arb:
    """k-ary randomized response itself when all others hold x, the victim x (P) or x' (Q)."""
    E, a = exp(epsilon0), ball(alpha)
    p = 1 / (E + k - 1)
    return mean_positive_part(
        n, (((E - a) / E, E * p), (1 - a * E, p), (1 - a, (k - 2) * p), (arb(0), arb(0))), tiny
    )


def subsampled(profile: Callable[[arb], arb], share: Number, alpha: Number) -> arb:
    """A random cohort that is this share of the population, from the profile of the cohort."""
    share, alpha = ball(share), ball(alpha)
    if alpha < 1:
        return 1 - alpha + alpha * subsampled(profile, share, 1 / alpha)
    return share * profile(1 + (alpha - 1) / share)


def two_reports(n: int, clone: arb, own: arb, alpha: arb) -> arb:
    """C ~ Bin(n - 1, clone) clones, each a fair one of two reports; the victim's is `own`-biased.

    Given C = c and the number j of reports of the first kind, with b = Pr[Bin(c, 1/2) = .],
    P = own b(j - 1) + (1 - own) b(j), and Q with own and 1 - own exchanged. P / Q increases
    in j, so the hockey stick is a sum over j >= t. From one c to the next the binomial tail moves
    by a term or two.
    """
    if alpha < 1:  # the pair is symmetric
        return 1 - alpha + alpha * two_reports(n, clone, own, 1 / alpha)
    gain, cost = own - alpha * (1 - own), alpha * own - (1 - own)
    if gain <= 0:
        return arb(0)
    tails = None
    total, seen = arb(0), arb(0)
    for c, weight in window(n - 1, clone, TINY):
        # Take j when j gain > (c + 1 - j) cost. On a tie the term is zero: either choice is right.
        t = min(_floor((c + 1) * cost / (gain + cost)) + 1, c + 1)
        tails = FairTail(c, t - 1) if tails is None else tails.moved(c, t - 1)
        from_before, from_t = tails.tail, tails.tail - tails.mass
        total += weight * (gain * from_before - cost * from_t)
        seen += weight
    return total + arb(0).union(_positive(1 - seen) + TINY)  # no hockey stick exceeds 1


class FairTail:
    """Pr[Bin(c, 1/2) >= s] and Pr[Bin(c, 1/2) = s], moved step by step."""

    def __init__(self, c: int, s: int) -> None:
        self.c, self.s = c, s
        self.mass = binomial_mass(c, arb(1) / 2, s)
        self.tail, term, j = arb(0), self.mass, s
        while j < c and not (2 * j > c and term < TINY * TINY):
            self.tail += term
            term *= arb(c - j) / (j + 1)
            j += 1
        # What is left is below a geometric series.
        ratio = arb(c - j) / (j + 1)
        self.tail += term + (arb(0) if j >= c else arb(0).union(term * ratio / (1 - ratio)))

    def moved(self, c: int, s: int) -> "FairTail":
        """The same for c and s not below the present ones."""
        while self.s < s and self.s < self.c:
            self._next_s()
        while self.c < c:
            self.tail += self.mass * self.s / (self.c + 1 - self.s) / 2
            self.mass *= arb(self.c + 1) / (2 * (self.c + 1 - self.s))
            self.c += 1
            while self.s < s and self.s < self.c:
                self._next_s()
        assert (self.c, self.s) == (c, s)
        return self

    def _next_s(self) -> None:
        self.tail -= self.mass
        self.mass *= arb(self.c - self.s) / (self.s + 1)
        self.s += 1


def mean_positive_part(n: int, law: Sequence[tuple[arb, arb]], tiny: Number = TINY) -> arb:
    """(1/n) E[(X_1 + ... + X_n)_+] for iid X with four values: x1 the largest, x2 the smallest.

    The number S of values x1 or x2, the number of x3 among the others, and the number of x1 among
    the S are nested binomials; the innermost sum is over a tail.
    """
    (x1, p1), (x2, p2), (x3, p3), (x4, p4) = law
    tiny = ball(tiny)
    total, seen = arb(0), arb(0)
    share3 = p3 / (p3 + p4) if p3 + p4 > 0 else arb(0)
    for s, weight in window(n, p1 + p2, tiny):
        inner = window(s, p1 / (p1 + p2), tiny / weight)
        first = inner[0][0]
        tail = _suffix_sums(mass for _, mass in inner)
        mean = _suffix_sums(j * mass for j, mass in inner)
        outer_seen = arb(0)
        for i, mass in window(n - s, share3, tiny / weight):
            fixed = s * x2 + i * x3 + (n - s - i) * x4
            t = min(max(_floor(-fixed / (x1 - x2)) + 1 - first, 0), len(inner))
            total += weight * mass * ((x1 - x2) * mean[t] + fixed * tail[t])
            outer_seen += mass
        seen += weight * outer_seen * tail[0]
    return (total + arb(0).union(n * x1 * (_positive(1 - seen) + TINY))) / n


def binary_exact(n: int, zeros: int, epsilon0: Number, alpha: Number) -> tuple[arb, arb]:
    """Binary randomized response when `zeros` of the n - 1 others hold 0, the rest 1.

    The two directions: the victim holds 0 under P and 1 under Q, and the other way round.
    """
    first, second = _binary_laws(n, zeros, epsilon0)
    a = ball(alpha)
    return (
        sum((_positive(p - a * q) for p, q in zip(first, second, strict=True)), arb(0)),
        sum((_positive(q - a * p) for p, q in zip(first, second, strict=True)), arb(0)),
    )


def binary_worst(n: int, epsilon0: Number, alpha: Number) -> arb:
    """The true profile of binary randomized response: all data of the others, both directions."""
    values = [value for m in range(n) for value in binary_exact(n, m, epsilon0, alpha)]
    worst = values[0]
    for value in values[1:]:
        worst = worst.max(value)
    return worst


def _binary_laws(n: int, zeros: int, epsilon0: Number) -> tuple[list[arb], list[arb]]:
    """The laws of the number of reports of 0 when the victim holds 0, and when 1."""
    E = exp(epsilon0)
    keep, flip = E / (E + 1), 1 / (E + 1)
    holds0, holds1 = arb_poly([flip, keep]), arb_poly([keep, flip])
    crowd = holds0**zeros * holds1 ** (n - 1 - zeros)
    return _coefficients(crowd * holds0, n), _coefficients(crowd * holds1, n)


def _coefficients(polynomial: arb_poly, degree: int) -> list[arb]:
    return [polynomial[i] for i in range(degree + 1)]


def binomial_mass(n: int, p: arb, c: int) -> arb:
    """Pr[Bin(n, p) = c]."""
    if not 0 <= c <= n:
        return arb(0)
    ways = (arb(n + 1).lgamma() - arb(c + 1).lgamma() - arb(n - c + 1).lgamma()).exp()
    return ways * p**c * (1 - p) ** (n - c)


def window(n: int, p: arb, tiny: arb) -> list[tuple[int, arb]]:
    """(c, Pr[Bin(n, p) = c]) in ascending order, around the mode, down to `tiny`."""
    if p.contains(0):
        return [(0, arb(1))]
    if p.contains(1):
        return [(n, arb(1))]
    mode = min(int(float((n + 1) * p)), n)
    peak = binomial_mass(n, p, mode)
    odds = p / (1 - p)
    down, mass = [], peak
    for c in range(mode, 0, -1):
        mass = mass * c / ((n - c + 1) * odds)
        if mass < tiny:
            break
        down.append((c - 1, mass))
    up, mass = [], peak
    for c in range(mode, n):
        mass = mass * (n - c) * odds / (c + 1)
        if mass < tiny:
            break
        up.append((c + 1, mass))
    return [*reversed(down), (mode, peak), *up]


def _suffix_sums(terms: Iterable[arb]) -> list[arb]:
    """Sums from each position on, and a last one of nothing."""
    backwards = accumulate(reversed(list(terms)), initial=arb(0))
    return list(backwards)[::-1]


def _floor(x: arb) -> int:
    """The whole number below, or, for a ball around a whole number, either neighbour."""
    return int(x.mid().floor().unique_fmpz())


def _positive(x: arb) -> arb:
    return x.max(arb(0))
