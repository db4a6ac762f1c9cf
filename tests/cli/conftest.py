"""The command line as the tests run it: in this process, except where the process is the subject."""

import shlex
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from shuffledp.cli.main import cli


@pytest.fixture
def shuffledp() -> Callable[..., Result]:
    """Runs ``shuffledp`` with a line of arguments; the result has its status, stdout and stderr."""

    def run(line: str, **settings: Any) -> Result:
        return CliRunner().invoke(cli, shlex.split(line), prog_name="shuffledp", **settings)

    return run
