"""Frequent strings: found cohort by cohort (T26), with few false positives, and clear where that ends."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp as sdp
from shuffledp import plotting
from shuffledp.collecting.strings import END, PrefixProtocol, heavy_hitters, padded
from shuffledp.shuffling.roles import analyze_file, randomize_file, shuffle_files

pytestmark = pytest.mark.quick

TARGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
WORDS = ["ab"] * 900 + ["aba"] * 700 + ["b"] * 400 + ["bbbbb"] * 300 + [""] * 200
KRR = sdp.KaryRandomizedResponse(k=4, epsilon0=1.5)


@pytest.fixture(scope="module")
def first() -> PrefixProtocol:
    return PrefixProtocol("ab", length=3, **TARGET, n=800)


def test_strings_are_found_and_counted_in_all_people() -> None:
    found = heavy_hitters(WORDS, alphabet="ab", length=3, **TARGET, rng=np.random.default_rng(1))
    truth = {"ab": 900, "aba": 700, "b": 400, "bbb": 300, "": 200}  # what is longer is known by its beginning
    assert set(found.categories) == set(truth)
    assert found.n == 2500
    low, high = found.interval(1 - 1e-6)
    for name, a, b in zip(found.categories, low, high, strict=True):
        assert a <= truth[name] <= b
    assert found.privacy.epsilon <= 1.0
    assert found.privacy.n_received in (833, 834)  # every cohort is planned for its own number
    assert (found.standard_errors > 0.0).all()
    assert found.poisoning(10)[0] > 10 * 2500 / 834
    assert len(found.to_pandas()) == 5


def test_a_prefix_is_kept_by_the_exact_tail(first: PrefixProtocol) -> None:
    """The least t with P(Bin(n, q) >= t) <= false_positives / (steps candidates), by summing."""
    _, q = first.randomizer.support_probability  # type: ignore[attr-defined]
    level = first.false_positives / (first.steps * (first.k - 1))

    def tail(t: int) -> float:
        return sum(math.comb(800, i) * q**i * (1.0 - q) ** (800 - i) for i in range(t, 801))

    found = first.threshold(800)
    assert tail(found) <= level < tail(found - 1)
    p, q = first.randomizer.support_probability  # type: ignore[attr-defined]
    assert (found - 800 * q) / (p - q) < first.detectable(0.5) + 1.0
    assert first.detectable(0.5) < first.detectable(0.99)


@pytest.mark.thorough
def test_what_nobody_holds_is_hardly_ever_found(first: PrefixProtocol) -> None:
    """All candidates of one step together: at most false_positives / steps, here measured."""
    eager = PrefixProtocol("ab", length=1, **TARGET, n=800, false_positives=0.3, randomizer=KRR)
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(80):
        result = eager.analyze(eager.randomize(["c"] * 800, rng=rng))  # "other", all of them
        wrong += bool(result.kept)
    assert 0 < wrong < 0.3 * 80


def test_step_by_step_in_three_roles(first: PrefixProtocol, tmp_path: Path) -> None:
    step: PrefixProtocol | None = sdp.protocol_from_dict(json.loads(json.dumps(first.to_dict())))  # type: ignore[assignment]
    assert step == first
    (tmp_path / "used").mkdir()
    for number, cohort in enumerate((WORDS[i::3] for i in range(3)), start=1):
        assert step is not None
        assert step.step == number
        files = [tmp_path / f"{name}{number}.parquet" for name in "rs"]
        randomize_file(step, cohort, files[0])
        shuffle_files(step, files[0], files[1], minimum=800, used=tmp_path / "used", most_per_file=900)
        result = analyze_file(step, files[1])
        assert result.privacy.epsilon <= 1.0
        step = result.next()
    assert step is None
    assert set(result.strings(n=2500).categories) == {"ab", "aba", "b", "bbb", ""}
    assert "aba*" in result.to_csv()
    assert "(other)" in str(result)
    assert END not in str(result)
    pytest.importorskip("matplotlib")
    ax = result.plot(ax=plotting.new_axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == result.labels
    assert "<table" in result.strings()._repr_html_()


def test_several_characters_at_once_give_the_same_strings() -> None:
    found = heavy_hitters(WORDS, alphabet="ab", length=3, stride=2, **TARGET, rng=np.random.default_rng(2))
    assert set(found.categories) == {"ab", "aba", "b", "bbb", ""}
    plan = PrefixProtocol(
        "ab", length=3, stride=2, **TARGET, n=800, randomizer=sdp.KaryRandomizedResponse(8, 1.0)
    )
    assert plan.steps == 2
    assert set(plan.categories) == {END * 2, "a" + END, "b" + END, "aa", "ab", "ba", "bb", ""}


def test_only_the_most_frequent_are_followed(first: PrefixProtocol) -> None:
    few = PrefixProtocol("ab", length=3, **TARGET, n=800, most=1, randomizer=first.randomizer)
    result = few.analyze(few.randomize(["a"] * 600 + ["b"] * 200))
    assert [each.category for each in result.kept] == ["a"]
    following = result.next()
    assert following is not None
    assert set(following.categories) == {"a" + END, "aa", "ab", ""}


def test_nothing_frequent_all_equal_and_few_people() -> None:
    nothing = heavy_hitters(["c", "dd", "e"] * 300, alphabet="ab", length=2, **TARGET)
    assert len(nothing) == 0
    assert "no string is frequent enough" in str(nothing)
    assert nothing.to_dict()["estimates"] == []
    with pytest.raises(ValueError, match="no category"):
        nothing.plot()
    same = heavy_hitters(["ba"] * 2000, alphabet="ab", length=2, **TARGET)
    assert same.categories == ("ba",)
    low, high = same.interval(1 - 1e-9)
    assert low[0] <= 2000 <= high[0]
    assert heavy_hitters(["ab"], alphabet="ab", length=1, **TARGET).n == 1
    with pytest.raises(sdp.TooFewReportsError, match="1 people are too few for 2 cohorts"):
        heavy_hitters(["ab"], alphabet="ab", length=2, **TARGET)


def test_values_that_are_no_strings_are_told(first: PrefixProtocol) -> None:
    with pytest.raises(sdp.DomainError, match="2 of 3 values are not in the domain: 1 missing, 1 outside"):
        first.randomize(["ab", None, 7])
    assert first.encode("zebra") == first.k - 1
    assert padded("abc", 2) == "ab"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alphabet": "aa"}, "different characters"),
        ({"alphabet": ""}, "different characters"),
        ({"alphabet": "a\0"}, "different characters"),
        ({"length": 0}, "length must be"),
        ({"length": 65}, "length must be"),
        ({"stride": 4}, "stride must be"),
        ({"step": 4}, "step must be"),
        ({"step": 2}, "prefixes must be texts of 1 characters"),
        ({"step": 2, "prefixes": ["a", "a"]}, "prefixes must be different"),
        ({"prefixes": []}, "prefixes must be texts"),
        ({"false_positives": 0.0}, "false_positives must be"),
        ({"false_positives": 1.0}, "false_positives must be"),
        ({"most": 0}, "most must be"),
        ({"alphabet": [chr(i) for i in range(97, 1300)], "stride": 3}, "candidates"),
    ],
)
def test_bad_plans_are_told(changes: dict[str, Any], message: str) -> None:
    plan: dict[str, Any] = {"alphabet": "ab", "length": 3, "n": 100, "randomizer": KRR, **TARGET} | changes
    with pytest.raises(ValueError, match=message):
        PrefixProtocol(**plan)
