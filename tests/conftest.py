"""Every test starts alike, whatever started the suite and whatever another test has set."""

import signal
from collections import Counter

import pytest
from flint import ctx

QUICK = "quick and not thorough and not slow"
"""What `make check` asks for."""


def pytest_configure() -> None:
    """A suite in the background of a shell is deaf to Ctrl-C, and so are the processes it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with many cases the quick tier takes the first two."""
    if config.option.markexpr != QUICK:
        return
    seen: Counter[str] = Counter()
    kept = []
    for item in items:
        test = item.nodeid.split("[", 1)[0]
        seen[test] += 1
        if seen[test] <= 2:
            kept.append(item)
    items[:] = kept


@pytest.fixture(autouse=True)
def precise() -> None:
    """Balls of one precision."""
    ctx.prec = 640
