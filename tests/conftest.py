"""Every test starts with balls of the same precision, whatever another one has set."""

import pytest
from flint import ctx


@pytest.fixture(autouse=True)
def precise() -> None:
    ctx.prec = 640
