"""PyTorch is loaded by those who learn, and by nobody else."""

import os
import subprocess
import sys

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)


NO_TORCH = "\nassert not any(name.split('.')[0] == 'torch' for name in sys.modules), 'torch'"


def test_importing_shuffledp_and_accounting_does_not_import_torch():
    code = (
        "import sys, shuffledp as sdp\n"
        "sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10).epsilon(delta=1e-3)\n"
        "[getattr(sdp, name) for name in sdp.__all__]"
    )
    done = run(code + NO_TORCH)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_every_module_but_learning_does_not_import_torch():
    code = (
        "import sys, importlib, pkgutil, shuffledp\n"
        "names = [m.name for m in pkgutil.walk_packages(shuffledp.__path__, 'shuffledp.',\n"
        "    onerror=lambda name: None) if not m.name.startswith('shuffledp.learning')]\n"
        "assert 'shuffledp.plotting.learning' in names\n"
        "skipped = ('__main__', 'spark')\n"
        "for name in names:\n"
        "    if not name.endswith(skipped): importlib.import_module(name)"
    )
    done = run(code + NO_TORCH)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_torch_the_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport shuffledp.learning"
    done = run(code)
    assert done.returncode == 1
    assert 'pip install "shuffledp[learn]"' in done.stderr
