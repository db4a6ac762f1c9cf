"""The verifier (V1, V2, V3): random certificates are confirmed, falsified ones are not; none is too small."""

import ast
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flint import arb, ctx

import shuffledp as sdp
from oracles import balls, brute
from shuffledp.cli.main import cli
from shuffledp.verifying._curves import upper
from shuffledp.verifying._positive_part import positive_part
from shuffledp.verifying._variable import Variable

ROOM = Path(sdp.__file__).parent / "verifying"
FILE = Path(__file__).resolve().parent.parent / "data" / "certificate-1.json"
TOLERANCE = 1e-3


def rewritten(certificate: sdp.Certificate, change: Callable[[dict[str, Any]], None]) -> sdp.Certificate:
    """A falsified certificate whose digest was made anew, so that only mathematics can tell."""
    content = certificate.to_dict()
    change(content)
    claim = content["claim"]
    return sdp.Certificate.made(claim["epsilon"], claim["delta"], content["rounds"], content["spacing"])


KARY = sdp.KaryRandomizedResponse(k=16, epsilon0=4.0)
WIDE = sdp.Facts(epsilon0=1.0, delta0=1e-14)
MATRIX = sdp.FiniteRandomizer([[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.25, 0.25, 0.5]])
MECHANISMS = {
    "clones": sdp.Shuffled(sdp.LocalRandomizer(2.0), n=10_000, analysis="best-leaked"),
    "clones, 1e7 users": sdp.Shuffled(sdp.LocalRandomizer(4.0), n=10**7, analysis="clones"),
    "clones of 2021": sdp.Shuffled(KARY, n=10_000, analysis="clones-2021"),
    "blanket": sdp.Shuffled(KARY, n=10**7),
    "strong": sdp.Shuffled(KARY, n=10_000, analysis="strong"),
    "exact": sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.0), n=1000),
    "total variation": sdp.Shuffled(sdp.Facts(epsilon0=2.0, total_variation=0.3), n=10_000),
    "matrix": sdp.Shuffled(MATRIX, n=1000, analysis="best-leaked"),
    "Laplace": sdp.Shuffled(sdp.DiscreteLaplace(levels=16, epsilon0=2.0), n=10_000, analysis="best-leaked"),
    "approximate": sdp.Shuffled(WIDE, n=10_000, analysis="clones"),
    "cohort": sdp.Shuffled(KARY, n=10_000).sampled_from(10**6),
    "honest people": sdp.Shuffled(KARY, n=1_000, population=10**5, honest_fraction=0.8),
    "Poisson cohort": sdp.Shuffled(KARY, n=10_000).sampled_from(10**6, poisson=True),
    "thirty rounds": 30 * sdp.Shuffled(KARY, n=10**6),
    "different rounds": 3 * sdp.Shuffled(KARY, n=10**6)
    + 2 * sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10**5, analysis="clones"),
    "cohorts, 100 rounds": 100 * sdp.Shuffled(KARY, n=10_000).sampled_from(10**6),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_answer_is_verified_and_a_smaller_one_is_not(name: str) -> None:
    tolerance = TOLERANCE if len(MECHANISMS[name].parts) == 1 == MECHANISMS[name].parts[0][1] else 1e-2
    bound = MECHANISMS[name].epsilon(delta=1e-6, tolerance=tolerance)
    certificate = bound.certificate()
    found = certificate.verify()
    assert found, found
    assert found.found <= found.delta == 1e-6
    assert str(found).startswith("verified: delta(")

    def smaller(content: dict[str, Any]) -> None:
        content["claim"]["epsilon"] = bound.upper * (1.0 - tolerance)

    assert not rewritten(certificate, smaller).verify()


@pytest.mark.parametrize(
    ("n", "epsilon0", "enough"), [(1000, 0.01, 0.01), (1000, 0.1, 0.5), (2000, 0.5, 0.1)]
)
def test_crowds_of_which_much_may_be_claimed_are_bounded(n: int, epsilon0: float, enough: float) -> None:
    """There cutting any weight costs little enough; one weight alone is no polygon."""
    curve = sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0), n=n, analysis="crowd")
    (one,) = curve.epsilon(delta=1e-6).certificate().to_dict()["rounds"]
    found = upper(one["curve"], arb(0), arb(enough))
    assert curve.delta(epsilon=0.0).lower <= float(found.upper()) <= enough


@pytest.mark.parametrize("n", [1000, 10_000])
def test_a_grid_with_a_report_in_the_middle_is_verified_in_any_crowd(n: int) -> None:
    """There two inputs are as likely: their difference is a ball around zero."""
    bound = sdp.Shuffled(sdp.DiscreteLaplace(levels=16, epsilon0=2.0), n=n).epsilon(delta=1e-6)
    certificate = bound.certificate()
    assert "crowd" in json.dumps(certificate.to_dict())
    assert certificate.verify()

    def smaller(content: dict[str, Any]) -> None:
        content["claim"]["epsilon"] = bound.lower * (1.0 - TOLERANCE)

    assert not rewritten(certificate, smaller).verify()


@pytest.mark.parametrize("name", ["clones", "strong", "exact", "thirty rounds"])
def test_a_delta_is_verified_and_a_smaller_one_is_not(name: str) -> None:
    tolerance = 1e-2 if name == "thirty rounds" else TOLERANCE
    certificate = MECHANISMS[name].delta(epsilon=0.15, tolerance=tolerance).certificate()
    assert certificate.verify()

    def smaller(content: dict[str, Any]) -> None:
        content["claim"]["delta"] *= 1.0 - 20.0 * tolerance

    assert not rewritten(certificate, smaller).verify()


@pytest.mark.slow
def test_a_hundred_thousand_rounds_are_verified() -> None:
    bound = (10**5 * sdp.Shuffled(KARY, n=10**6)).epsilon(delta=1e-8)
    assert bound.verify()
    clones = sdp.Shuffled(sdp.LocalRandomizer(2.0), n=10**5, analysis="clones")
    assert (10**4 * clones).epsilon(delta=1e-10).verify()


def test_random_certificates_are_verified_and_falsified_ones_are_not() -> None:
    source = random.Random(5)
    for _ in range(10):
        epsilon0, n = source.uniform(0.3, 5.0), int(10 ** source.uniform(2.5, 6.0))
        delta = 10 ** source.uniform(-12.0, -4.0)
        k = source.choice([2, 3, 10, 100])
        kary = sdp.KaryRandomizedResponse(k, epsilon0=epsilon0)
        randomizer = sdp.LocalRandomizer(epsilon0) if k == 2 else kary
        bound = sdp.Shuffled(randomizer, n=n, analysis="best-leaked").epsilon(
            delta=delta, tolerance=TOLERANCE
        )
        certificate = bound.certificate()
        assert certificate.verify(bits=128), (randomizer, n, delta)
        if bound.upper < epsilon0:
            for field, factor in (("epsilon", 1.0 - TOLERANCE), ("delta", 0.9)):

                def less(content: dict[str, Any], field: str = field, factor: float = factor) -> None:
                    content["claim"][field] *= factor

                assert not rewritten(certificate, less).verify(bits=128), (randomizer, n, delta, field)


def fewer_users(content: dict[str, Any]) -> None:
    for curve in content["rounds"][0]["curve"].get("curves", [content["rounds"][0]["curve"]]):
        curve["n"] = int(0.9 * curve["n"])


def more_rounds(content: dict[str, Any]) -> None:
    content["rounds"][0]["count"] += 1


def a_mass_moved(content: dict[str, Any]) -> None:
    (law,) = [c for c in content["rounds"][0]["curve"]["curves"] if c["kind"] == "law"]
    content["rounds"][0]["curve"]["curves"] = [law]
    law["types"][0][0] += 0.01
    law["types"][0][2] += 0.01
    law["types"][2][0] -= 0.01
    law["types"][2][2] -= 0.01


def less_hidden(content: dict[str, Any]) -> None:
    curves = content["rounds"][0]["curve"]["curves"]
    content["rounds"][0]["curve"]["curves"] = [c for c in curves if c["kind"] == "law"]
    content["rounds"][0]["curve"]["curves"][0]["types"][0][3] *= 0.9


def a_lower_point(content: dict[str, Any]) -> None:
    content["rounds"][0]["grid"]["value"][5] *= 0.99


def a_higher_point(content: dict[str, Any]) -> None:
    for i in range(1, 20):
        content["rounds"][0]["grid"]["value"][i] *= 1.02


def a_wider_lattice(content: dict[str, Any]) -> None:
    content["spacing"] *= 1.01


def a_narrower_lattice(content: dict[str, Any]) -> None:
    content["spacing"] *= 0.99


def a_point_shifted(content: dict[str, Any]) -> None:
    content["rounds"][0]["grid"]["index"][-2] -= 1


FALSE = [fewer_users, more_rounds, a_mass_moved, less_hidden]
FALSE_GRIDS = [a_lower_point, a_higher_point, a_wider_lattice, a_narrower_lattice, a_point_shifted]


@pytest.mark.parametrize("change", FALSE, ids=lambda change: change.__name__)
def test_a_certificate_of_one_round_that_claims_too_much_is_refused(change: Callable[[Any], None]) -> None:
    certificate = sdp.Shuffled(KARY, n=10**6).epsilon(delta=1e-8).certificate()
    if change is more_rounds:
        with pytest.raises(ValueError, match="not complete"):
            rewritten(certificate, change).verify()
    else:
        assert not rewritten(certificate, change).verify()


@pytest.mark.parametrize("change", FALSE + FALSE_GRIDS, ids=lambda change: change.__name__)
def test_a_certificate_of_rounds_that_claims_too_much_is_refused(change: Callable[[Any], None]) -> None:
    certificate = (30 * sdp.Shuffled(KARY, n=10**6)).epsilon(delta=1e-8, tolerance=3e-3).certificate()
    found = rewritten(certificate, change).verify()
    assert not found
    assert found.reason


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for name, each in value.items() for leaf in leaves(each, (*path, name))]
    if isinstance(value, list):
        return [leaf for i, each in enumerate(value) for leaf in leaves(each, (*path, i))]
    return [path]


@pytest.mark.quick
def test_a_file_changed_in_any_field_is_refused() -> None:
    content = json.loads(FILE.read_text())
    assert sdp.verify(content)
    for path in leaves(content)[::7]:
        changed = json.loads(FILE.read_text())
        *inner, last = path
        place = changed
        for step in inner:
            place = place[step]
        old = place[last]
        place[last] = f"{old}x" if isinstance(old, str) else (old or 1) * 2
        with pytest.raises(ValueError, match=r"changed|version|format"):
            sdp.verify(changed)


def test_a_certificate_of_the_first_format_is_still_read(tmp_path: Path) -> None:
    found = sdp.verify(FILE)
    assert found
    assert found.bits == 256
    again = sdp.Certificate.load(FILE)
    again.save(tmp_path / "copy.json")
    assert sdp.Certificate.load(tmp_path / "copy.json") == again


@pytest.mark.quick
def test_the_command_line_verifies_and_refuses(tmp_path: Path) -> None:
    path = tmp_path / "round.json"
    asked = f"epsilon --krr 16 --epsilon0 4 --n 1e5 --delta 1e-6 --verify --certificate {path}"
    answer = CliRunner().invoke(cli, asked.split())
    assert "verified    delta(" in answer.output
    assert CliRunner().invoke(cli, ["verify", str(path)]).exit_code == 0

    def smaller(content: dict[str, Any]) -> None:
        content["claim"]["delta"] *= 0.9

    rewritten(sdp.Certificate.load(path), smaller).save(path)
    refused = CliRunner().invoke(cli, ["verify", str(path), "--json"])
    assert refused.exit_code == 1
    assert json.loads(refused.output)["verified"] is False


@pytest.mark.quick
def test_what_is_no_certificate_says_so() -> None:
    with pytest.raises(ValueError, match="format"):
        sdp.Certificate("{}")
    with pytest.raises(ValueError, match="kind"):
        sdp.Certificate.made(0.1, 1e-6, [{"count": 1, "curve": {"kind": "wish"}}]).verify()
    with pytest.raises(ValueError, match="not complete"):
        sdp.Certificate.made(0.1, 1e-6, [{"count": 1, "curve": {"kind": "clones", "n": 3}}]).verify()
    with pytest.raises(ValueError, match="one epsilon or delta"):
        sdp.Shuffled(KARY, n=1000).delta(epsilon=[0.1, 0.2]).verify()
    with pytest.raises(ValueError, match="bits"):
        sdp.verify(FILE, bits=8)


@pytest.mark.quick
def test_the_verifier_imports_none_of_the_accountants_numerics() -> None:
    allowed = {"verifying", "errors", "_digits", "_files", "_json", "_lazy", "_progress"}
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shuffledp"):
                assert (node.module or "").split(".")[1] in allowed, path
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {"numpy", "scipy", "shuffledp"} & set(names), path
    code = (
        f"import sys, shuffledp as sdp; assert sdp.verify({str(FILE)!r});"
        "rooms = ('numpy', 'shuffledp.accounting', 'shuffledp._certified', 'shuffledp.facts');"
        "sys.exit(any(name.startswith(rooms) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The numbers themselves, against enumeration.


def exact_mean(law: list[tuple[Fraction, Fraction]], n: int) -> Fraction:
    """(1/n) E[(X_1 + ... + X_n)_+] from the definition."""
    rest = 1 - sum(p for _, p in law)
    total = Fraction(0)
    for outcome in product([*law, (Fraction(0), rest)], repeat=n):
        value = sum((x for x, _ in outcome), Fraction(0))
        if value > 0:
            total += value * math.prod((p for _, p in outcome), start=Fraction(1))
    return total / n


def ball(x: Fraction) -> arb:
    return arb(x.numerator) / x.denominator


@pytest.mark.quick
def test_the_sum_over_frequencies_is_above_the_mean_and_close_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from shuffledp.verifying import _positive_part

    monkeypatch.setattr(_positive_part, "_FEW_OUTCOMES", (0, 0))  # frequencies alone
    source = random.Random(3)
    for _ in range(8):
        types, n = source.randint(1, 3), source.randint(2, 5)
        weights = [source.randint(1, 9) for _ in range(types + 1)]
        law = [
            (Fraction(source.randint(-9, 9), source.randint(1, 5)), Fraction(w, sum(weights)))
            for w in weights[:types]
        ]
        truth = exact_mean(law, n)
        with ctx.workprec(128):
            variable = Variable([ball(x) for x, _ in law], [ball(p) for _, p in law])
            found = positive_part(variable, n, ball(truth) * (1 + arb(1e-3)))
            assert not found < ball(truth)
            assert truth == 0 or found <= ball(truth) * (1 + arb(1e-3)), (law, n)


@pytest.mark.quick
def test_all_outcomes_are_the_mean_itself() -> None:
    from shuffledp.verifying._positive_part import _enumerated

    law = [
        (Fraction(3, 2), Fraction(1, 5)),
        (Fraction(-2, 3), Fraction(2, 5)),
        (Fraction(1, 7), Fraction(1, 9)),
    ]
    found = _enumerated(Variable([ball(x) for x, _ in law], [ball(p) for _, p in law]), 4)
    assert abs(found - ball(exact_mean(law, 4))) < arb(1e-60)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7])
def test_curves_are_above_every_dataset(n: int, epsilon: float) -> None:
    matrix = brute.k_ary(3, 4)
    truth = brute.worst(brute.shuffled_pairs(matrix, n), Fraction(math.exp(epsilon)))
    local = math.nextafter(math.log(4.0), 9.0)
    curves: list[dict[str, Any]] = [
        {"kind": "clones", "n": n, "epsilon0": local},
        {"kind": "clones-2021", "n": n, "epsilon0": local},
        {"kind": "matrix", "n": n, "rows": [[float(p) for p in row] for row in matrix]},
    ]
    for curve in curves:
        assert not upper(curve, arb(epsilon), arb(0)) < ball(truth) * (1 - arb(1e-14)), curve


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_binary_response_is_the_worst_dataset(n: int) -> None:
    for epsilon in (0.0, 0.05, 0.4, 0.99):
        truth = balls.binary_worst(n, 1.0, arb(epsilon).exp())
        found = upper({"kind": "binary", "n": n, "epsilon0": 1.0}, arb(epsilon), arb(0))
        assert not found < truth
        assert found <= truth * (1 + arb(1e-12)) + arb(1e-16)


def test_rounds_are_above_every_adaptive_choice() -> None:
    matrix = brute.k_ary(3, 4)
    pairs = brute.shuffled_pairs(matrix, 3)
    local = math.log(4.0) * (1.0 + 1e-15)
    mechanism = 2 * sdp.Shuffled(sdp.LocalRandomizer(local), n=3, analysis="clones")
    for epsilon in (0.3, 1.0):
        bound = mechanism.delta(epsilon=epsilon)
        found = bound.verify()
        assert found, found
        truth = brute.worst_adaptive([pairs, pairs], Fraction(math.exp(epsilon)))
        assert found.found >= truth


def test_an_epsilon_next_to_the_local_one_is_confirmed_and_a_smaller_one_is_not() -> None:
    """Rows of floats have a loss that is some units above the epsilon0 that they are stated for."""
    noise = sdp.DiscreteLaplace(epsilon0=2.6576, levels=1)
    found = sdp.Shuffled(noise, n=136, analysis="crowd", honest_fraction=0.7).epsilon(delta=1e-6)
    assert found.upper == 2.6576
    assert found.certificate().verify()
    content = found.certificate().to_dict()
    assert not sdp.Certificate.made(2.6576 - 1e-5, 1e-6, content["rounds"], content["spacing"]).verify()
