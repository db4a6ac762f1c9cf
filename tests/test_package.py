"""The package itself: what it exports, and that importing it is cheap."""

import subprocess
import sys

import pytest

import shuffledp as sdp


def test_every_public_name_can_be_had_and_is_listed() -> None:
    for name in sdp.__all__:
        assert getattr(sdp, name) is not None
        assert name in dir(sdp)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = sdp.no_such_thing


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
