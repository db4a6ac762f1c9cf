"""PyTorch is loaded by those who learn, and by nobody else."""

import os
import subprocess
import sys

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)


def test_importing_shuffledp_and_accounting_does_not_import_torch():
    code = (
        "import sys, shuffledp as sdp\n"
        "sdp.Shuffled(sdp.LocalRandomizer(1.0), n=10).epsilon(delta=1e-3)\n"
        "assert not any(name.split('.')[0] == 'torch' for name in sys.modules), 'torch'"
    )
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_torch_the_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport shuffledp.learning"
    done = run(code)
    assert done.returncode == 1
    assert 'pip install "shuffledp[learn]"' in done.stderr
