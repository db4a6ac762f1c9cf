"""Every test starts alike, whatever started the suite and whatever another test has set."""

import signal

import pytest
from flint import ctx


def pytest_configure() -> None:
    """A suite in the background of a shell is deaf to Ctrl-C, and so are the processes it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def precise() -> None:
    """Balls of one precision."""
    ctx.prec = 640
