"""A real Flower simulation: drop-outs, late and doubled replies, a killed client, epsilon in the history.

Flower pins versions that other tests need newer, so it lives in an environment of its own, made once under
build/ (a minute; that is why this test is slow) or named by SHUFFLEDP_FLOWER. The rest of this environment is
visible from there, after Flower's own packages.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from shuffledp import PrivUnit, Shuffled

ROOT = Path(__file__).parents[2]
FLOWER = "flwr[simulation]>=1.41,<2"

LATE_AND_TWICE = """
import shuffled_sgd as example
from shuffledp.flower import ShuffledReports

class LateAndTwice(ShuffledReports):
    late = []

    def aggregate_train(self, server_round, replies):
        came = list(replies)
        everything, self.late = self.late + came + came, came
        return super().aggregate_train(server_round, everything)

example.ShuffledReports = LateAndTwice
example.run_simulation(example.server, example.client, num_supernodes=example.POPULATION)
"""
"""Every reply comes twice, and once more, before all others, in the next round."""


def python_with_flower() -> Path:
    named = os.environ.get("SHUFFLEDP_FLOWER")
    home = Path(named) if named else ROOT / "build" / "flower"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    if subprocess.run([python, "-c", "import flwr, ray"], capture_output=True, check=False).returncode != 0:
        asked = [python, "-m", "pip", "install", "-q", FLOWER]
        made = subprocess.run(asked, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            pytest.skip(f"Flower cannot be installed here: {made.stderr.strip().splitlines()[-1]}")
    (folder,) = (home / "lib").glob("python*/site-packages")
    (folder / "zz_tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="kills a process of Ray's")
def test_a_simulation_with_drop_outs_late_and_doubled_reports_and_a_killed_client(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "examples" / "flower")])
    environment = os.environ | {
        "PYTHONPATH": path,
        "RAY_DISABLE_DASHBOARD": "1",
        "FLWR_TELEMETRY_ENABLED": "0",
    }
    script = tmp_path / "late_and_twice.py"
    script.write_text(LATE_AND_TWICE, encoding="utf-8")
    ran = subprocess.run(
        [python_with_flower(), script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith('{"accuracy"')]
    assert lines, ran.stderr[-2000:]
    found = json.loads(lines[0])
    history = found["history"]
    assert [history[number]["reports"] for number in "123"] == [36, 36, 36]  # four of forty fail
    one = Shuffled(PrivUnit(10, 4.0, 0.2), n=20)  # accounted at the minimum
    for number in (1, 2, 3):
        certified = (number * one).upper_epsilon(delta=1e-3)
        assert history[str(number)]["epsilon"] == pytest.approx(certified, rel=1e-9)
    # The process is killed: too few reports, so the round is void, and so is the next.
    assert found["spent"] == 3
    assert [history[number]["void-rounds"] for number in "345"] == [0, 1, 2]
    assert history["5"]["epsilon"] == history["3"]["epsilon"]
    assert found["accuracy"] > 0.9
