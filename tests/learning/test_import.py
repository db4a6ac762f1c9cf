"""PyTorch is loaded by those who learn, and by nobody else."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import shuffledp

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(code: str) -> Any:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)


NO_TORCH = "\nassert not any(name.split('.')[0] == 'torch' for name in sys.modules), 'torch'"


def test_importing_shuffledp_and_accounting_does_not_import_torch() -> None:
    code = (
        "import sys, shuffledp as sdp\n"
        "sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10).epsilon(delta=1e-3)\n"
        "[getattr(sdp, name) for name in sdp.__all__]"
    )
    done = run(code + NO_TORCH)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_every_module_but_learning_does_not_import_torch() -> None:
    package = Path(shuffledp.__file__).parent
    paths = (path.relative_to(package.parent) for path in sorted(package.rglob("*.py")))
    modules = [
        ".".join(path.with_suffix("").parts)
        for path in paths
        if path.parts[1] != "learning" and path.stem != "__main__"
    ]
    assert "shuffledp.plotting._curves" in modules
    code = (  # an extra that is not installed is not this test's matter
        "import sys, importlib, contextlib\n"
        f"for name in {modules!r}:\n"
        "    with contextlib.suppress(ImportError): importlib.import_module(name)"
    )
    done = run(code + NO_TORCH)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_torch_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport shuffledp.learning"
    done = run(code)
    assert done.returncode == 1
    assert 'pip install "shuffledp[learn]"' in done.stderr
