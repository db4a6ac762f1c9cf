"""The package itself: what it exports, and that importing it is cheap."""

import subprocess
import sys
from pathlib import Path

import pytest

import shuffledp as sdp

ROOT = Path(sdp.__file__).parent
pytestmark = pytest.mark.quick


def test_every_public_name_can_be_had_and_is_listed() -> None:
    for name in sdp.__all__:
        assert getattr(sdp, name) is not None
        assert name in dir(sdp)


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "no_such_thing"
    with pytest.raises(AttributeError, match=name):
        getattr(sdp, name)


def test_importing_the_package_loads_neither_numpy_nor_scipy() -> None:
    code = "import sys, shuffledp; sys.exit(bool({'numpy', 'scipy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_answer_needs_numpy_alone() -> None:
    code = (
        "import sys, shuffledp as sdp;"
        "sdp.Shuffled(sdp.LocalRandomizer(1.0), n=1000).epsilon(delta=1e-6);"
        "sys.exit(bool('scipy' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_accountant_loads_no_sampler() -> None:
    code = (
        "import sys, shuffledp as sdp;"
        "sdp.Shuffled(sdp.Facts(epsilon0=1.0), n=1000).epsilon(delta=1e-6);"
        "rooms = ('shuffledp.randomizers', 'shuffledp._randomness');"
        "sys.exit(any(name.startswith(rooms) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_accountant_never_asks_what_a_randomizer_is() -> None:
    rooms = [ROOT / "accounting", ROOT / "_certified", ROOT / "facts.py", ROOT / "bound.py"]
    for path in (
        path for room in rooms for path in (room.rglob("*.py") if room.is_dir() else [room])
    ):
        text = path.read_text(encoding="utf-8")
        assert "shuffledp.randomizers" not in text, path
        assert "getattr(randomizer" not in text, path
