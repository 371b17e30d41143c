"""The queries that run: they have one runtime, whoever asks for it first."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from millpond import Engine
from millpond.sharing.queries import Queries
from tests.patience import wait_until_inside


def test_threads_that_come_first_at_the_same_time_find_one_runtime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, threads, found = Queries._start, [], []

    def slow(self: Queries) -> Any:
        for thread in threads:
            wait_until_inside(thread, "runtime")  # this one, or waiting for it
        return start(self)

    monkeypatch.setattr(Queries, "_start", slow)
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT, t BIGINT) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT a FROM S")
        threads += (threading.Thread(target=lambda: found.append(engine.runtime)) for _ in range(2))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[0] is found[1]
