"""Koskela, Heikkila, Honkela 2021, "Tight accounting in the shuffle model": Figures 1, 2, supplement."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shuffledp.accounting.mechanism import Shuffled
from shuffledp.errors import OutsideRangeError
from shuffledp.literature.closed_forms import balle_2019_krr_delta, feldman_2021_delta
from shuffledp.papers._profiles import clones_of_2021_as_transcribed
from shuffledp.papers._result import (
    Curve,
    Item,
    Panel,
    Result,
    Setting,
    Table,
    delta_curve,
    evaluated,
    upper_curve,
)
from shuffledp.papers.koskela_2021 import as_published as printed
from shuffledp.papers.koskela_2023 import as_published as tails
from shuffledp.plotting._style import LABELS
from shuffledp.randomizers.kary import KaryRandomizedResponse
from shuffledp.randomizers.local import LocalRandomizer

DELTA, EPSILON = LABELS["delta"], LABELS["epsilon"]
N, K, GAMMA = 1000, 4, 0.25


def inside_range(bound: Callable[[float], float]) -> Callable[[float], float]:
    """nan where a theorem says nothing."""

    def answer(x: float) -> float:
        try:
            return bound(x)
        except OutsideRangeError:
            return math.nan

    return answer


def figure_1(setting: Setting) -> Result:
    """k-ary randomized response: strong and weak adversary, several messages."""
    survey = KaryRandomizedResponse(k=K, gamma=GAMMA)
    panels = []
    for rounds, end in ((1, 1.2), (2, 1.6), (4, 2.0)):
        epsilon = np.linspace(0.05, end, setting.choose(47, 9))
        strong = rounds * Shuffled(survey, n=N, analysis="strong")
        curves = [
            upper_curve("strong adversary", strong, epsilon),
            delta_curve("weak adversary", rounds * Shuffled(survey, n=N), epsilon),
        ]
        if rounds == 1:
            curves += _published(epsilon, survey.epsilon0)
        title = (
            f"4-ary randomized response, n = 1000, γ = 0.25, {rounds} message{'s' * (rounds > 1)}"
        )
        panels.append(Panel(title, EPSILON, DELTA, tuple(curves), floor=1e-12))
    marginal = printed.marginals_as_published(N, K, GAMMA, 0.5)
    truth = Shuffled(survey, n=N, analysis="strong").upper_delta(epsilon=0.5)
    tail = tails.strong_tail_as_published(N, K, GAMMA, 0.5)
    analytic = balle_2019_krr_delta(survey.epsilon0, K, N, 1.0)
    exact = Shuffled(survey, n=N, analysis="strong").upper_delta(epsilon=1.0)
    return Result(
        shows="""Shuffled 4-ary randomized response, n = 1000, gamma = 0.25: "tight" bounds for the
        strong and the weak adversary and several messages, far below the analytic bound of Balle
        et al. 2019, Theorem 3.1.""",
        computed="""The hockey-stick divergence of each adversary's view, certified, for 1, 2 and 4
        messages (a user who sends n_c messages takes part in n_c rounds); the analytic bound where
        it applies; and the two things that the paper calls tight: the tail of Theorem 8 and the
        hockey stick of the one-dimensional counts (Section 4.1).""",
        difference=f"""At epsilon = 0.5, one message, strong adversary: certified {truth:.3e};
        Theorem 8's tail {tail:.3e}; the one-dimensional counts {marginal[0]:.2e} and
        {marginal[1]:.2e} in the two directions. At epsilon = 1 the analytic bound is
        {analytic:.2e} and the certified one {exact:.2e}: the message of the figure stands.""",
        why="""Theorems 8, 10 and 11 state tail probabilities where the divergence is a hockey
        stick: never tight, and with independent counts no upper bound in general. Section 4.1's
        counts P_s, Q_s are marginals of what the strong adversary sees, so their divergence is a
        lower bound: "P_s close to Q_s implies DP" is the wrong way round.""",
        panels=tuple(panels),
        missing="Which numbers of messages the figure draws is not in the text we have.",
    )


def _published(epsilon: np.ndarray, epsilon0: float) -> list[Curve]:
    analytic = inside_range(lambda e: balle_2019_krr_delta(epsilon0, K, N, e))
    return [
        evaluated("Balle et al. 2019, Theorem 3.1", "sound", epsilon, analytic),
        evaluated(
            "one-dimensional counts P_s, Q_s",
            "unsound",
            epsilon,
            lambda e: printed.marginals_as_published(N, K, GAMMA, e)[0],
        ),
        evaluated(
            "Theorem 8, independent counts",
            "unsound",
            epsilon,
            lambda e: tails.strong_tail_as_published(N, K, GAMMA, e),
        ),
    ]


def _general_panel(n: int, points: int) -> Panel:
    epsilon = np.linspace(0.02, 1.2, points) * math.sqrt(10**4 / n)
    one = Shuffled(LocalRandomizer(epsilon0=4.0), n=n)
    old = Shuffled(LocalRandomizer(epsilon0=4.0), n=n, analysis="clones-2021")
    pair = clones_of_2021_as_transcribed(4.0, n)
    names = {1: "1 message", 2: "2 messages", 4: "4 messages"}
    curves = [delta_curve("2022 clones, 1 message", one, epsilon)]
    curves += [upper_curve(f"2021 clones, {names[c]}", c * old, epsilon) for c in names]
    curves += [
        Curve(f"(5.1)-(5.2), {names[c]}", "sound", epsilon, (c * pair).upper_delta(epsilon=epsilon))
        for c in names
    ]
    closed = inside_range(lambda e: feldman_2021_delta(4.0, n, e))
    curves.append(evaluated("2021 clones, closed form", "sound", epsilon, closed))
    power = len(str(n)) - 1
    title = f"any ε₀-LDP randomizer, n = 10{'⁰¹²³⁴⁵⁶'[power]}, ε₀ = 4"
    return Panel(title, EPSILON, DELTA, tuple(curves), floor=1e-12)


def _general(setting: Setting, sizes: tuple[int, ...], shows: str) -> Result:
    panels = tuple(_general_panel(n, setting.choose(40, 9)) for n in sizes)
    rows = []
    for n in sizes:
        rounds = {
            "2022 clones": Shuffled(LocalRandomizer(epsilon0=4.0), n=n),
            "2021 clones": Shuffled(LocalRandomizer(epsilon0=4.0), n=n, analysis="clones-2021"),
            "(5.1)": clones_of_2021_as_transcribed(4.0, n),
        }
        values = (f"{part.upper_epsilon(delta=1e-6):.4f}" for part in rounds.values())
        rows.append((f"{n:,}", *values))
    columns = ("n", "2022 clones", "2021 clones", "(5.1)-(5.2) as printed")
    return Result(
        shows=shows,
        computed="""Three pairs, all certified: the strong clones (2022), the clones of Feldman et
        al. 2021 as in their own code, and the pair that this paper prints as (5.1)-(5.2), for 1, 2
        and 4 messages. The printed pair's outcomes count three types of reports, so it is itself a
        shuffled round and any n is immediate.""",
        difference="""The printed pair is valid but looser than the clones it transcribes, most of
        all for small delta (table: epsilon at delta = 1e-6, one message).""",
        why="""(5.1) has the differing user's report vanish when it is not a clone; in Feldman et
        al. 2021 it becomes the other kind of clone. Seeing it vanish helps the adversary, so the
        printed pair dominates the right one. Its formulas (Lemma 12, Appendix B) are right for
        that pair, up to "q = e^-epsilon0" in Lemma B.2.""",
        panels=panels,
        tables=(Table("epsilon at delta = 1e-6, one message", columns, tuple(rows)),),
        missing="Which numbers of messages the figure draws is not in the text we have.",
    )


def figure_2(setting: Setting) -> Result:
    """delta(epsilon) of any 4-LDP randomizer, n = 10^4."""
    return _general(
        setting,
        (10**4,),
        """delta against epsilon for general shuffled randomizers, epsilon0 = 4, n = 10,000: the
        Fourier accountant close to the numerical method of Feldman et al. for one message, and
        bounds for several messages.""",
    )


def supplement(setting: Setting) -> Result:
    """The same for n = 10^5 and 10^6."""
    return _general(
        setting,
        (10**5, 10**6),
        """The same comparison as Figure 2 for n = 10^5 and n = 10^6 (in the supplement, which is not part of
        the text we have; the main text names the two sizes and says that n = 10^6 took about a minute).""",
    )


ITEMS = (
    Item("koskela-2021-figure-1", "Koskela et al. 2021, Figure 1: randomized response", figure_1),
    Item("koskela-2021-figure-2", "Koskela et al. 2021, Figure 2: any randomizer", figure_2),
    Item("koskela-2021-supplement", "Koskela et al. 2021, supplement: n = 10^5, 10^6", supplement),
)
