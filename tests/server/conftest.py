from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.serving import Running, running


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as made:
        yield made
