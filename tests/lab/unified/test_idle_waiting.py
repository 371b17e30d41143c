from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.unified import idle_waiting


def test_on_demand_timestamps_cure_idle_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_waiting, "SLOW_PER_SECOND", (1.0,))
    tables = idle_waiting.run([0], seconds=10.0)
    assert tables["latency"]["waiting"][0] > 20 * tables["latency"]["on demand"][0]
    assert [claim.verdict for claim in idle_waiting.check(tables)] == ["holds", "holds"]


def test_waits_are_until_the_next_of_the_other_input() -> None:
    drawn = {"fast": np.array([1.0, 2.0, 4.0]), "slow": np.array([3.0, 5.0])}
    assert idle_waiting._until_the_next(drawn) == pytest.approx((2 + 1 + 1 + 1 + 0) / 5)


def test_half_a_wait_and_a_fifth_more_than_the_work_are_noticed() -> None:
    table = {"slow per second": [1.0], "until the next": [1.0]}
    for waiting, cured, expected in ((1.0, 0.0042, ["holds"] * 2), (0.5, 0.005, ["fails"] * 2)):
        found = {**table, "waiting": [waiting], "on demand": [cured]}
        assert [claim.verdict for claim in idle_waiting.check({"latency": found})] == expected
