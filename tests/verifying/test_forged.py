"""Certificates forged by hand: consistent in form, with a fresh digest, and claiming less than the truth."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import shuffledp as sdp
from shuffledp.verifying._stated import covers_its_mirror

pytestmark = pytest.mark.quick

Content = dict[str, Any]
N, DELTA = 2000, 1e-6
MADE = {
    "law": sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=4.0), n=N, analysis="blanket"),
    "clones": sdp.Shuffled(sdp.LocalRandomizer(2.0), n=N, analysis="clones"),
    "binary": sdp.Shuffled(sdp.BinaryRandomizedResponse(epsilon0=1.0), n=N),
    "matrix": sdp.Shuffled(
        sdp.FiniteRandomizer([[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.25, 0.25, 0.5]]), n=N, analysis="blanket"
    ),
    "crowd": sdp.Shuffled(sdp.SymmetricUnaryEncoding(16, epsilon0=1.0), n=N, analysis="crowd"),
    "rows": sdp.Shuffled(sdp.DiscreteLaplace(levels=2, epsilon0=1.0), n=N, analysis="crowd"),
    "rounds": 3 * sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=1.0), n=N),
    "leaks": sdp.Shuffled(sdp.Facts(epsilon0=1.0, delta0=1e-14), n=N),
    "groups": sdp.ShuffledGroups.of(sdp.KaryRandomizedResponse, {1.0: 500, 2.0: 500}, k=4).person(1.0),
}


def curves(value: Any) -> Iterator[Content]:
    """All curves of a certificate, also those that others are made of."""
    if isinstance(value, dict):
        if "kind" in value:
            yield value
        for each in value.values():
            yield from curves(each)
    elif isinstance(value, list):
        for each in value:
            yield from curves(each)


def of(kind: str, change: Callable[[Content], Any]) -> Callable[[Content], None]:
    """Every curve of that kind is changed, or stands alone."""

    def changed(content: Content) -> None:
        (part,) = content["rounds"]
        found = [curve for curve in curves(part["curve"]) if curve["kind"] == kind]
        assert found
        part["curve"] = found[0]
        change(found[0])

    return changed


def round_of(**fields: Any) -> Callable[[Content], None]:
    return lambda content: content["rounds"][0].update(fields)


def put(**fields: Any) -> Callable[[Content], None]:
    return lambda curve: curve.update(fields)


def rows_of(curve: Content, place: int, change: Callable[[float], float]) -> None:
    for row in curve["types"]:
        row[place] = change(row[place])


def rare_left_out(curve: Content) -> None:
    """A report that tells all, so rare that a total within a millionth of one does not show it."""
    first = curve["types"][0]
    taken = min(9e-7, first[0])
    first[0], first[2] = first[0] - taken, first[2] - taken


def all_hidden(curve: Content) -> None:
    """The common part of a pair, where that of all inputs is less: as much as either has of every type."""
    for row in curve["types"]:
        row[3] = 1.5 * min(row[0], row[1])


def nothing(content: Content) -> None:
    content["rounds"][0]["curve"] = {"kind": "largest", "curves": []}


def no_loss(content: Content) -> None:
    content["rounds"][0]["curve"] = {"kind": "losses", "laws": []}


def impossible(content: Content) -> None:
    """A pair whose second law has more than there is."""
    law = {"loss": [-9.0], "mass": [1.0], "infinity": 0.0}
    content["rounds"][0]["curve"] = {"kind": "losses", "laws": [law]}


def light(content: Content) -> None:
    """A privacy loss distribution most of whose mass is missing."""
    law = {"loss": [-0.1], "mass": [0.1], "infinity": 0.0}
    content["rounds"][0]["curve"] = {"kind": "losses", "laws": [law]}


FORGED: list[tuple[str, Callable[[Content], None]]] = [
    ("law", round_of(epsilon0=1e-9)),
    ("rounds", round_of(epsilon0=1e-3)),
    ("crowd", round_of(epsilon0=1e-9)),
    ("law", of("law", all_hidden)),
    ("law", of("law", rare_left_out)),
    ("law", of("law", lambda c: rows_of(c, 2, lambda gap: 0.99 * gap))),
    ("law", of("law", lambda c: rows_of(c, 3, lambda clone: 2.0 * clone))),
    ("law", of("law", lambda c: c["types"].pop(0))),
    ("law", of("law", lambda c: c["types"].append([0.0, 0.0, -0.5, 0.0]))),
    ("law", nothing),
    ("law", no_loss),
    ("law", light),
    ("law", impossible),
    ("leaks", of("approximate", put(delta0=-1e-3))),
    ("leaks", of("approximate", put(at=-1.0))),
    ("binary", of("binary", put(epsilon0=-1.0))),
    ("clones", of("clones", put(epsilon0=-2.0))),
    ("clones", of("clones", put(kind="binary", epsilon0=-2.0))),
    ("matrix", of("matrix", lambda c: c.update(rows=[[0.9 * p for p in row] for row in c["rows"]]))),
    ("matrix", of("matrix", put(rows=[]))),
    ("matrix", of("matrix", lambda c: c["rows"][0].__setitem__(0, -0.5))),
    ("crowd", of("crowd", put(epsilon0=1e-3))),
    ("crowd", of("crowd", put(common=1.0))),
    ("crowd", of("crowd", put(laws=[]))),
    ("crowd", of("crowd", lambda c: c["laws"][0].pop(0))),
    ("rows", of("crowd", put(epsilon0=1e-3))),
    ("rows", of("crowd", lambda c: c.update(rows=[[0.9 * p for p in row] for row in c["rows"]]))),
    ("groups", of("groups", lambda c: c.update(groups=[[2.0 * s, n] for s, n in c["groups"]]))),
]


def claimed(content: Content, epsilon: float) -> sdp.Certificate:
    return sdp.Certificate.made(epsilon, DELTA, content["rounds"], content["spacing"])


@pytest.mark.parametrize(("name", "forge"), FORGED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(FORGED)])
def test_a_forged_certificate_of_less_than_the_truth_is_not_verified(
    name: str, forge: Callable[[Content], None]
) -> None:
    mechanism = MADE[name]
    bound = mechanism.epsilon(delta=DELTA, tolerance=1e-2)
    content = bound.certificate().to_dict()
    forge(content)
    for share in (0.98, 0.5) if bound.lower else (0.5,):
        epsilon = share * (bound.lower or bound.upper)
        assert mechanism.lower_delta(epsilon=epsilon) > DELTA or not bound.lower
        with suppress(ValueError):
            assert not claimed(json.loads(json.dumps(content)), epsilon).verify(bits=128)


def test_a_report_of_the_other_input_that_is_left_out_counts() -> None:
    """One that tells all; what is left covers its mirror image. Unless own is raised by as much: rounding."""
    plain = MADE["law"].certificate(epsilon=2.0, delta=1e-8).to_dict()

    def verified(lowered: float, raised: float) -> bool:
        content = json.loads(json.dumps(plain))
        types = content["rounds"][0]["curve"]["types"]
        least, most = (pick(types, key=lambda row: float(row[2])) for pick in (min, max))
        least[1], least[2] = least[1] - lowered, least[2] + lowered
        most[0], most[2] = most[0] + raised, most[2] + raised
        assert covers_its_mirror(types)
        return bool(sdp.Certificate.made(2.0, 1e-8, content["rounds"]).verify(bits=128))

    assert verified(0.0, 0.0)
    assert not verified(1e-7, 0.0)
    assert not verified(1e-7, 2e-7)
    assert verified(1e-10, 2e-10)
    assert verified(1e-10, 1e-10)


def test_other_rounds_are_another_claim() -> None:
    """A certificate of a kinder randomizer is true of that, and not of the round that it is shown for."""
    bound = MADE["law"].epsilon(delta=DELTA)
    content = bound.certificate().to_dict()
    assert bound.certificate().verify(of=MADE["law"])
    content["rounds"][0] |= {"epsilon0": 0.5, "curve": {"kind": "clones", "n": N, "epsilon0": 0.5}}
    forged = claimed(content, 0.5 * bound.lower)
    assert forged.verify()
    found = forged.verify(of=MADE["law"])
    assert not found
    assert "other rounds" in found.reason


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield path
    for name, each in items or ():
        yield from leaves(each, (*path, name))


def test_no_field_of_a_round_can_be_changed() -> None:
    """With a fresh digest: whatever is stated of the rounds, in every place."""
    looked = 0
    for mechanism in MADE.values():
        certificate = mechanism.certificate(epsilon=0.9, delta=0.5, tolerance=1e-2)
        for path in leaves(certificate.to_dict()["rounds"]):
            if "grid" in path:
                continue
            content = certificate.to_dict()
            place: Any = content["rounds"]
            for step in path[:-1]:
                place = place[step]
            old = place[path[-1]]
            place[path[-1]] = f"{old}x" if isinstance(old, str) else (old or 1) * 2
            assert not claimed(content, 0.9).verify(of=mechanism), path
            looked += 1
    assert looked > 150


GRIDS: list[Callable[[Content, Content], object]] = [
    lambda content, grid: grid.update(value=[0.9 * v for v in grid["value"]]),
    lambda content, grid: grid.update(value=[0.0 for _ in grid["value"]]),
    lambda content, grid: grid.update(value=[-v for v in grid["value"]]),
    lambda content, grid: grid.update(value=[*grid["value"][1:], 0.0]),
    lambda content, grid: grid.update(value=grid["value"][::-1]),
    lambda content, grid: grid.update(index=[2 * j for j in grid["index"]]),
    lambda content, grid: grid.update(index=[0, 10**9], value=[grid["value"][0], 0.0]),
    lambda content, grid: grid.update(index=[0, 0, *grid["index"][2:]]),
    lambda content, grid: grid.update(index=grid["index"][1:], value=grid["value"][1:]),
    lambda content, grid: grid.update(index=[], value=[]),
    lambda content, grid: grid.update(index=[10**30 * j for j in grid["index"]]),
    lambda content, grid: content.update(spacing=0.5 * content["spacing"]),
    lambda content, grid: content.update(spacing=2.0 * content["spacing"]),
    lambda content, grid: content.update(spacing=1e-300),
    lambda content, grid: content.update(spacing=1e300),
    lambda content, grid: content.update(spacing=-content["spacing"]),
    lambda content, grid: content["rounds"][0].update(epsilon0=grid["index"][3] * content["spacing"]),
    lambda content, grid: content["rounds"][0].update(epsilon0=None),
    lambda content, grid: content["rounds"][0].update(count=10**30),
    lambda content, grid: content["rounds"][0].pop("grid"),
]


@pytest.mark.parametrize("cohort", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_grid_proves_less_than_the_truth(cohort: bool) -> None:
    one = sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=1.0), n=N, analysis="blanket")
    mechanism = 10 * (one.sampled_from(10 * N) if cohort else one)
    bound = mechanism.epsilon(delta=DELTA, tolerance=1e-2)
    certificate = bound.certificate()
    assert certificate.verify(bits=128)
    for forge in GRIDS:
        content = certificate.to_dict()
        forge(content, content["rounds"][0]["grid"])
        with suppress(ValueError):
            assert not claimed(content, 0.98 * bound.lower).verify(bits=128)


def test_a_point_of_a_grid_that_is_too_low_is_seen() -> None:
    """In every place, though chords between others do without most of them."""
    mechanism = 3 * sdp.Shuffled(sdp.KaryRandomizedResponse(16, epsilon0=1.0), n=N, analysis="blanket")
    bound = mechanism.epsilon(delta=DELTA, tolerance=1e-2)
    certificate = bound.certificate()
    assert certificate.verify(bits=128)
    for place, value in enumerate(certificate.to_dict()["rounds"][0]["grid"]["value"]):
        if value > DELTA:
            content = certificate.to_dict()
            content["rounds"][0]["grid"]["value"][place] = 0.95 * value
            found = claimed(content, bound.upper).verify(bits=128)
            assert not found, place
            assert "below the curve" in found.reason


def test_laws_cover_their_mirror_images_only_if_they_are_hidden_alike() -> None:
    """Reports that tell the same may be split in any way; what hides them may not differ."""
    one = [[0.3, 0.1, 0.2, 0.1], [0.3, 0.1, 0.2, 0.1], [0.2, 0.6, -0.4, 0.2], [0.2, 0.2, 0.0, 0.2]]
    assert covers_its_mirror(one)
    assert not covers_its_mirror([*one[:2], [0.2, 0.6, -0.4, 0.19], one[3]])
    assert not covers_its_mirror([[0.3, 0.1, 0.2, 0.1], [0.3, 0.1, 0.2, 0.05], *one[2:]])
    assert not covers_its_mirror([*one[:2], [0.2, 0.61, -0.41, 0.2], one[3]])


def test_what_cannot_be_a_certificate_is_a_value_error() -> None:
    law = MADE["law"].epsilon(delta=DELTA).certificate().to_dict()["rounds"][0]
    law["curve"]["types"][0][3] = 1e-300
    forged: list[Any] = [[0], [{}], [{"count": "x"}], [law]]
    for rounds in forged:
        with suppress(ValueError):
            assert not sdp.Certificate.made(0.1, DELTA, rounds).verify()


def test_local_epsilons_add_up_where_delta_covers_every_delta0() -> None:
    mechanism = 100 * sdp.Shuffled(sdp.Facts(epsilon0=1.0, delta0=1e-9), n=N)
    content = mechanism.certificate(epsilon=100.0, delta=1.001e-7).to_dict()
    assert content["spacing"] is None
    assert sdp.Certificate.made(100.0, 1.001e-7, content["rounds"]).verify()
    for epsilon, delta in ((99.9, 1.001e-7), (100.0, 0.999e-7)):
        with suppress(ValueError):
            assert not sdp.Certificate.made(epsilon, delta, content["rounds"]).verify()


def test_what_a_cohort_leaks_is_its_share_of_all_that_may_be() -> None:
    leaky = sdp.Shuffled(sdp.LocalRandomizer(1.0, delta0=1e-7), n=100).sampled_from(400)
    epsilon, delta = math.log1p(0.25 * math.expm1(1.0)) * (1 + 1e-12), 0.25 * 1e-7  # both exact: a quarter
    (whole,) = leaky.certificate(epsilon=epsilon, delta=delta).to_dict()["rounds"]
    assert sdp.Certificate.made(epsilon, delta, [whole]).verify()
    assert not sdp.Certificate.made(epsilon * (1 - 1e-9), delta, [whole]).verify()
    assert not sdp.Certificate.made(epsilon, delta * (1 - 1e-15), [whole]).verify()
    honest = sdp.Shuffled(leaky.randomizer, n=100).sampled_from(400, honest_fraction=0.5)
    (part,) = honest.certificate(epsilon=1.0, delta=1e-6).to_dict()["rounds"]
    assert sdp.Certificate.made(0.63, 1.05 * delta, [part]).verify()  # 100 of 200, at most: 0.6201
    for weights in ([0.0], [-1.0], [0.5]):
        some = {**part["curve"], "weights": weights, "curves": part["curve"]["curves"][-1:]}
        with pytest.raises(ValueError, match="weights"):
            sdp.Certificate.made(0.7, 0.9 * delta, [{**part, "curve": some}]).verify()
    for fraction in (-0.25, 0.0, 1.5):
        forged = json.loads(json.dumps(whole))
        for curve in curves(forged):
            curve.update({"fraction": fraction} if "fraction" in curve else {})
        with pytest.raises(ValueError, match="fraction"):
            sdp.Certificate.made(epsilon, delta, [forged]).verify()
