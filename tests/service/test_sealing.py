"""Seals, signed tasks and key files."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from service.running import survey

import shuffledp as sdp
from shuffledp import _json
from shuffledp.errors import PlanError, SealError, UnknownKeyError
from shuffledp.service.documents import Signed, Task, sampler_of
from shuffledp.service.keys import AnalystKey, KeyRing
from shuffledp.service.sealing import PublicKey, body_size, key_id, new_id, open_inner, open_outer, seal

pytestmark = pytest.mark.quick

SIGNER, ANALYST, SHUFFLER = (
    Ed25519PrivateKey.generate(),
    X25519PrivateKey.generate(),
    X25519PrivateKey.generate(),
)
RAW = SHUFFLER.public_key().public_bytes_raw()
KEY, KEYS = PublicKey(key_id(RAW), RAW), {key_id(RAW): SHUFFLER}
TASK = bytes(range(32))


def sealed(report: bytes, task: bytes = TASK, name: bytes | None = None) -> bytes:
    return seal(report, task, ANALYST.public_key().public_bytes_raw(), KEY, name or new_id())


def test_two_seals_open_with_two_keys_and_have_one_size() -> None:
    name = new_id()
    for report in (b"\0", b"\1", b"\xff"):
        body = sealed(report, name=name)
        assert len(body) == body_size(1)
        found, inner = open_outer(body, TASK, KEYS)
        assert found == name
        assert open_inner(inner, TASK, ANALYST) == report
    assert sealed(b"\0", name=name) != sealed(b"\0", name=name)


def test_every_changed_bit_every_cut_and_every_other_task_or_key_is_refused() -> None:
    body = sealed(b"\7")
    for place in range(8 * len(body)):
        changed = bytearray(body)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(SealError):
            open_outer(bytes(changed), TASK, KEYS)
    for cut in range(len(body)):
        with pytest.raises(SealError):
            open_outer(body[:cut], TASK, KEYS)
    with pytest.raises(SealError, match="another task"):
        open_outer(body, bytes(32), KEYS)
    with pytest.raises(UnknownKeyError):
        open_outer(body, TASK, {})
    _, inner = open_outer(body, TASK, KEYS)
    with pytest.raises(SealError):
        open_inner(inner, TASK, SHUFFLER)
    with pytest.raises(SealError):
        open_inner(inner, bytes(32), ANALYST)


def signed_task() -> Task:
    return Task.new("pets", survey(), key=SIGNER, analyst=bytes(32), shuffler=bytes(32))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"name": "../etc"},
        {"report_bytes": 9},
        {"analyst": "00"},
        {"sampler": {"kind": "response", "k": 3, "weights": ["18446744073709551614", "1"]}},
        {"plan": survey(301).fingerprint},
        {"more": 1},
    ],
    ids=str,
)
def test_a_task_that_contradicts_itself_is_refused_though_it_is_signed(change: dict[str, object]) -> None:
    content = signed_task().content
    with pytest.raises(PlanError):
        Task.checked(Signed.by(SIGNER, _json.canonical(content | change)))


def test_a_plan_that_misses_its_target_is_refused_where_nobody_vouches_for_it() -> None:
    content = signed_task().content
    plan = json.loads(content["plan"])
    plan["epsilon"] = 0.5
    with pytest.raises(PlanError, match="does not hold"):
        Task.checked(Signed.by(SIGNER, _json.canonical(content | {"plan": _json.canonical(plan)})))


def test_a_signature_is_of_every_byte_and_of_one_signer() -> None:
    signed = signed_task().signed
    public = SIGNER.public_key().public_bytes_raw()
    assert Task.checked(signed, signer=public, fingerprint=survey().fingerprint).name == "pets"
    with pytest.raises(PlanError, match="does not fit"):
        Task.checked(Signed(signed.text + " ", signed.signer, signed.signature))
    with pytest.raises(PlanError, match="signed by"):
        Task.checked(signed, signer=bytes(32))
    wrong: list[object] = [{}, [], {"text": 1, "signer": "", "signature": ""}, {"text": "", "signer": "x"}]
    for entries in wrong:
        with pytest.raises(PlanError):
            Signed.from_dict(entries)
    assert Signed.from_dict(signed.to_dict()) == signed


@pytest.mark.thorough
def test_samplers_have_the_weights_of_their_randomizers() -> None:
    ages = sdp.MeanProtocol(0, 100, epsilon=2.0, delta=1e-3, n=50)
    bits = sdp.OptimisedUnaryEncoding(k=5, epsilon0=1.5)
    unary = sdp.HistogramProtocol(list(range(5)), 2.0, 1e-3, 50, randomizer=bits)
    noise = sdp.DiscreteLaplace(epsilon0=1.0, low=0.0, high=1.0)
    grid = sdp.SumProtocol(0.0, 1.0, 2.0, 1e-3, 50, randomizer=noise)
    for protocol, kind in ((survey(), "response"), (ages, "response"), (unary, "unary"), (grid, "grid")):
        sampler = sampler_of(protocol)
        assert sampler is not None
        assert sampler["kind"] == kind
    assert sampler_of(unary)["weights"] == [str(weight) for weight in bits.weights]
    middle, *sides = [int(weight) for weight in sampler_of(grid)["noise"]]
    assert middle + 2 * sum(sides) == 2**64
    hadamard = sdp.HadamardResponse(k=5, epsilon0=1.5)
    assert sampler_of(sdp.HistogramProtocol(list(range(5)), 2.0, 1e-3, 50, randomizer=hadamard)) is None


def test_keys_are_their_owners_and_change_without_losing_what_is_under_way(tmp_path: Path) -> None:
    made = AnalystKey.new(tmp_path / "analyst.key")
    assert (tmp_path / "analyst.key").stat().st_mode & 0o777 == 0o600
    assert AnalystKey.read(tmp_path / "analyst.key").signer == made.signer
    with pytest.raises(FileExistsError):
        AnalystKey.new(tmp_path / "analyst.key")
    (tmp_path / "other.key").write_text("{}")
    with pytest.raises(ValueError, match="no analyst's key"):
        AnalystKey.read(tmp_path / "other.key")
    ring = KeyRing.open(tmp_path / "ring")
    assert (tmp_path / "ring").stat().st_mode & 0o777 == 0o700
    new = ring.rotated()
    assert new.public == ring.public
    assert set(ring.private) < set(new.private)
    assert new.document != ring.document
    assert list(new.retired().private) == [list(new.private)[-1]]
