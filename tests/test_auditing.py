"""The audit: honest clients stand, dishonest ones fall, and its bounds hold as often as they say."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from oracles import brute
from oracles.claims import rational_exp
from oracles.hockey import atoms, hockey_stick, swapped
from shuffledp.auditing import BY_CLAIM, LEARNED, _by_claim, at_least, at_most
from shuffledp.cli.main import cli
from shuffledp.randomizers.subset import SubsetSelection
from shuffledp.randomizers.unary import OptimisedUnaryEncoding, SymmetricUnaryEncoding

pytestmark = pytest.mark.quick

CLAIM = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0)


def pooled(randomizer: Any, seed: int, size: int = 4096) -> Callable[[Any], Any]:
    """A client that runs the randomizer on many values at once."""
    rng = np.random.default_rng(seed)
    waiting: dict[str, Iterator[Any]] = {}

    def client(value: Any) -> Any:
        for report in waiting.get(str(value), ()):
            return report
        waiting[str(value)] = iter(randomizer.randomize(np.stack([value] * size), rng=rng))
        return next(waiting[str(value)])

    return client


@cache
def three_people(others: int) -> tuple[Any, Any]:
    """k = 3 and E = 3: the shuffled laws of three people of whom one holds 0 or 1, in rationals."""
    matrix = brute.k_ary(3, 3)
    first, second = (brute.shuffled_law(matrix, [value, others, others]) for value in (0, 1))
    return first, second


THREE = sdp.KaryRandomizedResponse(k=3, epsilon0=math.log(3.0))


def exceeds(others: int, epsilon: float, delta: Fraction) -> bool:
    """Whether an epsilon is below the true one of the three people at delta."""
    pair = atoms(*three_people(others))
    return max(hockey_stick(side, rational_exp(epsilon)) for side in (pair, swapped(pair))) > delta


def test_an_honest_client_stands_and_much_of_its_epsilon0_is_seen() -> None:
    found = sdp.audit(CLAIM.randomize, CLAIM, runs=4000, confidence=0.999)
    assert not found.violated
    assert 0.6 < found.found <= 1.0


@pytest.mark.thorough
def test_wrong_probabilities_a_repeated_seed_and_impossible_reports_are_found() -> None:
    rng = np.random.default_rng(1)
    looser = sdp.KaryRandomizedResponse(k=4, epsilon0=2.0)
    swapped = [(0, 1, 2, 3)[(value + 1) % 4] for value in range(4)]
    clients: list[tuple[Any, Any]] = [
        (lambda value: looser.randomize(value, rng=rng), (0, 1)),  # a larger epsilon0
        (lambda value: CLAIM.randomize(value, rng=np.random.default_rng(3)), (0, 1)),  # one seed for all
        (lambda value: swapped[value] if rng.random() < 0.9 else value, (0, 1)),  # lies, but always the same
    ]
    for client, inputs in clients:
        assert sdp.audit(client, CLAIM, inputs=inputs, runs=2000).violated
    laplace = sdp.DiscreteLaplace(epsilon0=1.0, levels=8)
    floats = sdp.audit(lambda value: value + rng.laplace(), laplace, inputs=(0.0, 1.0), runs=200)
    assert floats.violated
    assert floats.impossible == 400
    assert not sdp.audit(laplace.randomize, laplace, inputs=(0.0, 1.0), runs=500).violated


@pytest.mark.thorough
def test_noise_of_floats_is_found_whatever_is_claimed() -> None:
    """Reports that never repeat: the last binary digit tells 0 from 1, the size a scale that is too small."""
    rng, claim = np.random.default_rng(4), sdp.LocalRandomizer(epsilon0=1.0)
    grid: dict[str, Any] = {"inputs": (0.0, 1.0), "runs": 4000, "confidence": 0.999}
    assert sdp.audit(lambda value: value + rng.laplace(), claim, **grid).found > 3.0
    coarse = sdp.audit(lambda value: round(1024 * (value + rng.laplace())) / 1024, claim, **grid)
    assert not coarse.violated
    assert coarse.found > 0.4
    less = sdp.audit(lambda value: round(1024 * (value + rng.laplace(scale=0.4))) / 1024, claim, **grid)
    assert less.violated
    bare = sdp.audit(lambda value: float(value), claim, shuffled=3, delta=0.01, **grid)
    assert bare.shuffled_found is not None
    assert bare.shuffled_found > 1.0


@pytest.mark.thorough
def test_shuffles_are_audited_too() -> None:
    binary = sdp.BinaryRandomizedResponse(epsilon0=1.0)
    honest = sdp.audit(binary.randomize, binary, runs=4000, shuffled=3, delta=0.01, confidence=0.999)
    assert not honest.violated
    assert honest.shuffled_claim is not None
    truth = sdp.audit(lambda value: value, binary, runs=4000, shuffled=3, delta=0.01)
    assert truth.shuffled_found is not None
    assert truth.shuffled_found > honest.shuffled_claim
    assert "shuffled    3 reports" in str(truth)


@pytest.mark.parametrize("others", [0, 1, 2])
def test_the_test_of_the_claim_is_the_likelihood_ratio_of_the_whole_shuffle(others: int) -> None:
    """So no test tells more: every outcome of three people, by its exact probabilities."""
    (test,) = _by_claim(THREE, (0, 1, others))
    first, second = three_people(others)
    for counts, p in first.items():
        reports = [report for report, count in enumerate(counts) for _ in range(count)]
        expected = math.log(p / second[counts])
        for order in (reports, reports[::-1]):
            assert test.statistic([order])[0] == pytest.approx(expected, abs=1e-8)


def test_the_dataset_is_that_of_the_lower_end() -> None:
    """Of three people those who hold x hide least, as enumeration says, of a hundred those with a third
    value; in an interval the ends are farthest apart."""
    delta = Fraction(1, 100)
    found = sdp.audit(pooled(THREE, 1), THREE, runs=100, shuffled=3, delta=float(delta))
    low = sdp.Shuffled(THREE, n=3).epsilon(delta=float(delta)).lower
    assert (found.inputs, found.others) == ((0, 1), 0)
    assert exceeds(0, low - 1e-6, delta)
    assert not exceeds(2, low - 0.05, delta)
    many = sdp.audit(pooled(CLAIM, 1), CLAIM, runs=100, shuffled=100, delta=0.01)
    assert (many.inputs, many.others) == ((0, 1), 2)
    noisy = sdp.DiscreteLaplace(epsilon0=1.0, low=10.0, high=20.0, levels=4)
    ends = sdp.audit(pooled(noisy, 1), noisy, runs=100)
    assert sorted(ends.inputs) == [10.0, 20.0]
    assert not ends.violated


@pytest.mark.thorough
def test_a_bound_of_shuffles_is_above_the_truth_no_more_often_than_it_says() -> None:
    """Confidence one half, 24 audits of three people, the true epsilon by enumeration."""
    delta = Fraction(1, 50)
    asked: dict[str, Any] = {"runs": 4000, "shuffled": 3, "delta": float(delta), "confidence": 0.5}
    found = [sdp.audit(pooled(THREE, seed), THREE, **asked) for seed in range(24)]
    below = [exceeds(each.others, each.shuffled_found or 0.0, delta) for each in found]
    assert below.count(False) <= 20  # 12 in the mean at most; more than 20: once in 7,000
    assert sum(each.found > THREE.epsilon0 for each in found) <= 20
    assert sum(each.shuffled_found or 0.0 for each in found) > 24 * 0.3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "randomizer",
    [
        SymmetricUnaryEncoding(k=12, epsilon0=3.0),
        sdp.KaryRandomizedResponse(k=300, epsilon0=4.0),
        sdp.PrivUnit(dimension=20, epsilon0=3.0),
    ],
    ids=lambda randomizer: type(randomizer).__name__,
)
def test_where_reports_are_many_the_test_of_the_lower_end_sees_more_than_a_learned_one(
    randomizer: Any,
) -> None:
    asked: dict[str, Any] = {"runs": 4000, "shuffled": 5, "delta": 0.01, "confidence": 0.999}
    found = sdp.audit(pooled(randomizer, 3), randomizer, **asked)
    inputs, third = found.inputs, found.others
    learned = sdp.audit(pooled(randomizer, 3), randomizer.facts(), inputs=inputs, third=third, **asked)
    assert (found.shuffled_test, learned.shuffled_test) == (BY_CLAIM, LEARNED)
    assert found.shuffled_found is not None
    assert learned.shuffled_found is not None
    assert found.shuffled_found > learned.shuffled_found
    assert found.shuffled_found <= sdp.Shuffled(randomizer, n=5).epsilon(delta=0.01).lower
    assert found.found >= learned.found
    assert not found.violated


@pytest.mark.parametrize("randomizer", [OptimisedUnaryEncoding(9, 2.0), SubsetSelection(9, 2.0)], ids=repr)
def test_sets_are_possible_reports(randomizer: Any) -> None:
    """Their bytes may be larger than the number of categories."""
    assert sdp.audit(pooled(randomizer, 1), randomizer, runs=100).impossible == 0


@pytest.mark.thorough
def test_a_client_that_leaks_where_the_claim_sees_nothing_is_found_by_what_was_learned() -> None:
    """Report 3 is as likely on 0 as on 1, says the claim."""
    rng = np.random.default_rng(6)

    def client(value: int) -> int:
        return 3 if value == 0 and rng.random() < 0.5 else int(rng.integers(3))

    found = sdp.audit(client, CLAIM, runs=2000, shuffled=4, third=2, delta=0.01)
    assert (found.test, found.shuffled_test) == (LEARNED, LEARNED)
    assert found.found > CLAIM.epsilon0
    assert (found.shuffled_found or 0.0) > (found.shuffled_claim or math.inf)


@pytest.mark.thorough
def test_swapped_probabilities_and_one_seed_for_all_are_found_in_shuffles_too() -> None:
    rng, gamma = np.random.default_rng(7), CLAIM.gamma

    def swapped_chances(value: int) -> int:
        return int(rng.integers(4)) if rng.random() < 1.0 - gamma else value

    def one_seed(value: int) -> int:
        return int(CLAIM.randomize(value, rng=np.random.default_rng(3)))

    for client in (swapped_chances, one_seed):
        found = sdp.audit(client, CLAIM, runs=6000, shuffled=3, delta=0.01)
        assert found.found > CLAIM.epsilon0
        assert (found.shuffled_found or 0.0) > (found.shuffled_claim or math.inf)


@pytest.mark.thorough
def test_noise_of_floats_is_found_beside_a_claim_that_knows_no_floats() -> None:
    """Also in shuffles, and by what it gives away, not only because such reports are impossible."""
    rng, claim = np.random.default_rng(8), sdp.DiscreteLaplace(epsilon0=1.0, levels=8)
    found = sdp.audit(
        lambda value: value + rng.laplace(), claim, runs=4000, shuffled=2, delta=0.01, confidence=0.999
    )
    assert (found.test, found.shuffled_test) == (LEARNED, LEARNED)
    assert found.found > 3.0
    assert (found.shuffled_found or 0.0) > (found.shuffled_claim or math.inf)


def test_a_true_claim_with_a_delta0_stands() -> None:
    rng = np.random.default_rng(2)

    def client(value: int) -> int:
        return 10 + value if rng.random() < 0.05 else int(CLAIM.randomize(value, rng=rng))

    leaks = sdp.LocalRandomizer(epsilon0=1.0, delta0=0.05)
    assert not sdp.audit(client, leaks, runs=4000, confidence=0.999).violated
    assert sdp.audit(client, sdp.LocalRandomizer(epsilon0=1.0, delta0=0.01), runs=4000).violated


@pytest.mark.parametrize(("hits", "runs"), [(0, 20), (1, 20), (7, 20), (20, 20), (60, 400)])
def test_bounds_of_a_probability_are_clopper_and_pearson_s(hits: int, runs: int) -> None:
    def tail(p: float, least: int) -> float:
        return sum(math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(least, runs + 1))

    low, high = at_least(hits, runs, 0.01), at_most(hits, runs, 0.01)
    assert tail(low, hits) <= 0.01 * (1 + 1e-6) or hits == 0
    assert tail(min(low + 1e-6, 1.0), hits) >= 0.0099 or hits == 0
    assert 1.0 - tail(high, hits + 1) <= 0.0101 or hits == runs
    assert low <= hits / runs <= high


def test_the_command_finds_programs_that_repeat_themselves(tmp_path: Path) -> None:
    send = "print(int(line) if random.random() < .47 else random.randrange(4))"
    source = f"import random, sys\nrandom.seed({{}})\nfor line in sys.stdin: {send}\n"
    runner = CliRunner()
    for seed, status in (("", 0), ("5", 1)):
        client = tmp_path / f"client{seed}.py"
        client.write_text(source.format(seed))
        claim = ["audit", "--krr", "4", "--epsilon0", "2", "--runs", "600", "--"]
        result = runner.invoke(cli, [*claim, sys.executable, str(client)])
        assert result.exit_code == status, result.output
        assert ("randomness repeats" in result.output) == bool(seed)
    shuffles = ["--shuffled", "3", "--third", "2", "--delta", "0.01"]
    result = runner.invoke(cli, [*claim[:-1], *shuffles, "--", sys.executable, str(tmp_path / "client.py")])
    assert "shuffled    3 reports at delta = 0.01" in result.output
    assert "all hold 2" in result.output
    missing = runner.invoke(cli, ["audit", "--krr", "4", "--epsilon0", "2", "--", "no-such-program"])
    assert missing.exit_code != 0


@pytest.mark.thorough
def test_the_command_reads_sets_and_vectors(tmp_path: Path) -> None:
    source = """import sys
import numpy as np
import shuffledp as sdp
rows = np.array([[float(part) for part in line.split()] for line in sys.stdin])
values = rows if rows.shape[1] > 1 else rows[:, 0].astype(int)
for report in sdp.{}.randomize(values):
    print(*report.tolist())
"""
    claims = {
        "OptimisedUnaryEncoding(90, 2.0)": ("--oue", "90"),
        "PrivUnit(3, 2.0)": ("--privunit", "3", "--inputs", "1 0 0", "0 1 0"),
    }
    for made, claim in claims.items():
        client = tmp_path / "client.py"
        client.write_text(source.format(made))
        line = ["audit", *claim, "--epsilon0", "2", "--runs", "1000", "--shuffled", "3", "--json"]
        line += ["--confidence", "0.9999"]  # so that the loss of epsilon0 itself is not found by chance
        result = CliRunner().invoke(cli, [*line, "--", sys.executable, str(client)])
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert (found["impossible"], found["test"]) == (0, BY_CLAIM)
        assert found["told_apart"] == ([0, 1] if made[0] == "O" else [[1, 0, 0], [0, 1, 0]])
        assert 0.5 < found["found"] <= 2.0
    words = ["--inputs", "007", "1", "--runs", "100", "--", "sed", "s/007/a b/"]
    told = CliRunner().invoke(cli, ["audit", "--epsilon0", "2", *words])
    assert "of two inputs, 7 and 1" in told.output
    assert "VIOLATED" in told.output


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"runs": 10}, "runs must be"),
        ({"confidence": 0.2}, "confidence must be"),
        ({"inputs": (1,)}, "inputs must"),
    ],
)
def test_bad_questions(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sdp.audit(CLAIM.randomize, CLAIM, **wrong)
