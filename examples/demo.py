"""A daily question to a million users, for a month: what does it cost in privacy?

Run it with `make demo`.
"""

from time import perf_counter

import shuffledp as sdp

K, EPSILON0, N, ROUNDS, DELTA = 16, 4.0, 1_000_000, 30, 1e-8
TARGET = 1.0

ANALYSES = {
    "best": "the smallest of all that apply",
    "blanket": "privacy blanket of this randomizer",
    "clones": "strong clones, any randomizer (2022)",
    "clones-2021": "clones, any randomizer (2021)",
    "strong": "if it leaks who answered at random, you too",
}


def main() -> None:
    """Print the certified epsilon, the table of analyses, and the calibrated local epsilon."""
    answer = sdp.KaryRandomizedResponse(k=K, epsilon0=EPSILON0)
    print(
        f"Each of {N:,} users answers a question with {K} possible answers by randomized\n"
        f"response (local epsilon0 = {EPSILON0:g}); a shuffler forgets who sent what.\n"
        f"{ROUNDS} daily rounds, delta = {DELTA:g}.\n"
    )
    month = ROUNDS * sdp.Shuffled(answer, n=N)
    bound = month.epsilon(delta=DELTA)
    print(
        f"Certified central epsilon after {ROUNDS} rounds: {float(bound):.4f}\n"
        f"  the true value of this mechanism lies in [{bound.lower:.4f}, {bound.upper:.4f}]\n"
        f"  without the shuffler, the local guarantee is {ROUNDS} x {EPSILON0:g}"
        f" = {ROUNDS * EPSILON0:g}\n"
    )
    print_analyses(answer)
    print_calibration()
    print_survey()


def print_analyses(answer: sdp.KaryRandomizedResponse) -> None:
    """The same question under each analysis: all are upper bounds, some tighter than others."""
    print("The same under each analysis (all are sound; smaller is tighter):\n")
    print(f"  {'analysis':<12}  {'epsilon <=':>10}  {'time':>8}  what it is")
    for analysis, meaning in ANALYSES.items():
        start = perf_counter()
        bound = (ROUNDS * sdp.Shuffled(answer, n=N, analysis=analysis)).epsilon(delta=DELTA)
        milliseconds = 1e3 * (perf_counter() - start)
        print(f"  {analysis:<12}  {float(bound):>10.4f}  {milliseconds:>5.1f} ms  {meaning}")
    print()


def print_calibration() -> None:
    """How much local noise a central epsilon of TARGET needs, and the check that it is met."""
    start = perf_counter()
    found = sdp.calibrate(sdp.KaryRandomizedResponse, k=K, n=N, rounds=ROUNDS, epsilon=TARGET, delta=DELTA)
    milliseconds = 1e3 * (perf_counter() - start)
    print(
        f"A central epsilon of {TARGET:g} over the {ROUNDS} rounds is met by a local "
        f"{found.parameter} of {found.value:.4f} ({milliseconds:.0f} ms)\n"
        f"  checked: with it, the certified epsilon is {float(found.epsilon):.4f} <= {TARGET:g}"
    )


def print_survey() -> None:
    """A whole collection: plan, randomize, shuffle, analyze, with error bars and a statement."""
    people = ["cat"] * 20_000 + ["dog"] * 17_000 + ["fish"] * 3_000 + ["none"] * 10_000
    survey = sdp.HistogramProtocol(["cat", "dog", "fish", "none"], epsilon=TARGET, delta=DELTA, n=len(people))
    reports = sdp.shuffle(survey.randomize(people))
    result = survey.analyze(reports)
    print(f"\nA survey of {len(people):,} people, from plan to result:\n\n{result}")


if __name__ == "__main__":
    main()
