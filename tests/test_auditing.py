"""The audit: honest clients stand, dishonest ones fall, and its bounds hold as often as they say."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shuffledp as sdp
from shuffledp.auditing import at_least, at_most
from shuffledp.cli.main import cli

pytestmark = pytest.mark.quick

CLAIM = sdp.KaryRandomizedResponse(k=4, epsilon0=1.0)


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
    missing = runner.invoke(cli, ["audit", "--krr", "4", "--epsilon0", "2", "--", "no-such-program"])
    assert missing.exit_code != 0


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
