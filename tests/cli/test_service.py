"""The commands of the running shuffler: two parties, keys, thresholds, what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import shuffledp as sdp
from shuffledp._json import canonical
from shuffledp.service.sealing import new_id, seal
from shuffledp.service.shuffler import Shuffler

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    plan = sdp.HistogramProtocol(["no", "yes", "perhaps"], epsilon=1.0, delta=1e-6, n=300)
    (tmp_path / "plan.json").write_text(canonical(plan.to_dict()))
    return tmp_path


def test_analyst_and_shuffler_set_up_a_task_apart_from_each_other(shuffledp: Run, folder: Path) -> None:
    assert shuffledp("task keys --key analyst.key").exit_code == 0
    identity = json.loads(shuffledp("task keys --json").stdout)["identity"]
    line = f"task sign pets --plan plan.json --key analyst.key --shuffler {identity} -o pets.task"
    assert shuffledp(line).exit_code == 0
    made = shuffledp("task create --signed pets.task --minimum 310 --spread 5 --json")
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    assert (found["name"], found["minimum"], found["epsilon"] <= 1.0) == ("pets", 310, True)
    refused = shuffledp("task release pets")
    assert refused.exit_code == 1
    with Shuffler("shuffler") as shuffler:
        collection = shuffler.collection("pets")
        key, task = collection.task.shuffler_key(shuffler.keys.document), collection.task
        reports = task.protocol.randomize(["yes"] * 330)
        bodies = [seal(np.asarray(one).tobytes(), task.id, task.analyst, key, new_id()) for one in reports]
        shuffler.store.add([shuffler.opened(collection, body) for body in bodies])
    assert "330 of 310 reports" in shuffledp("task status").stdout
    batch = json.loads(shuffledp("task release pets --json").stdout)["file"]
    answer = json.loads(shuffledp(f"analyze {batch} --key analyst.key --protocol plan.json --json").stdout)
    assert answer["n"] >= 310
    assert answer["privacy"]["n_honest"] == 300
    assert "is sealed" in shuffledp(f"analyze {batch}").output
    assert shuffledp("task delete pets").exit_code == 0
    assert "was deleted here" in shuffledp("task create --signed pets.task").output


def test_a_plan_is_signed_and_used_by_whoever_has_the_public_key(shuffledp: Run, folder: Path) -> None:
    shuffledp("task keys --key analyst.key")
    told = json.loads(shuffledp("sign plan.json --key analyst.key -o signed.json --json").stdout)
    use = "randomize --value yes --protocol signed.json -o a.parquet --public-key"
    other = json.loads(shuffledp("task keys --key other.key --json").stdout)["signer"]
    assert "not signed with this key" in shuffledp(f"{use} {other}").output
    made = shuffledp(f"{use} {told['public_key']} --fingerprint {told['fingerprint']}")
    assert made.exit_code == 0, made.output
    assert "must not exist yet" in shuffledp("sign plan.json --key analyst.key -o signed.json").output
    changed = json.loads((folder / "plan.json").read_text()) | {"epsilon": 0.1}
    (folder / "worse.json").write_text(canonical(changed))
    refused = shuffledp("sign worse.json --key analyst.key -o worse.signed")
    assert refused.exit_code == 1
    assert not (folder / "worse.signed").exists()


def test_keys_are_rotated_and_retired(shuffledp: Run, folder: Path) -> None:
    counts = [
        json.loads(shuffledp(f"task keys {how} --json").stdout)["keys"]
        for how in ("", "--rotate", "--retire")
    ]
    assert counts == [1, 2, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("task create", "needs the NAME"),
        ("task create pets", "--plan and --key"),
        ("task sign pets", "--shuffler and --output"),
        ("task release nothing", "name must be one of"),
        ("serve --store mysql://x --check", "store must be"),
    ],
)
def test_wrong_usage_is_explained(shuffledp: Run, folder: Path, line: str, message: str) -> None:
    result = shuffledp(line)
    assert result.exit_code != 0
    assert message in result.output
