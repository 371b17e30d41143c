"""Where strategies would lie in the plane, predicted beside the engine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from millpond import Engine
from millpond.errors import StateError
from millpond.scheduling.strategy_text import driving_spark
from millpond.server import plane
from millpond.server.plane import Plane
from millpond.simulator.prediction import predicted
from tests.server.serving import SCRIPT, Running


@pytest.mark.slow
def test_every_strategy_has_its_point(server: Running) -> None:
    assert "nothing was measured" in server.http.get("/api/plane").json()["error"]
    server.push(*((t, t % 3) for t in range(200)))
    server.wait(lambda: server.service.engine.result_count("big") > 50)
    told = server.http.get("/api/plane").json()
    named = {each["strategy"] for each in told["strategies"] + told["refused"]}
    assert named == set(driving_spark())
    assert told["strategies"]
    for each in told["strategies"]:
        assert each["mean_bytes"] >= 0
        assert each["p95_latency_seconds"] >= 0 <= each["mean_latency_seconds"]
    assert server.http.get("/api/plane").json()["time"] == told["time"]  # not predicted again
    sample = server.wait(lambda: server.http.get("/api/history").json()["samples"])[-1]
    assert sample["mean_backlog_bytes"] >= 0


def measured() -> dict[str, object]:
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(t, t % 3) for t in range(200)])
        engine.run_until_idle()
        return engine.statistics()


def test_the_other_process_says_what_the_simulator_says() -> None:
    facts = measured()
    asked = {"measured": facts, "strategies": ["chain"], "budget_bytes": 1e9, "blocks": 50}
    command = [sys.executable, "-m", "millpond.simulator.predicting"]
    answer = subprocess.run(
        command, input=json.dumps(asked), text=True, capture_output=True, check=True
    )
    (expected,) = predicted(facts, ["chain"], 1e9, 50)
    found = json.loads(answer.stdout)
    assert len(found) == 5
    assert found == {name: getattr(expected, name) for name in found}


def test_hours_of_arrivals_are_predicted() -> None:
    facts = measured()
    stream = {"tuple_bytes": 20.0, "slot_seconds": 40.0}
    hours = {"arrivals": [7.0] * 500, "pages": [3.0] * 500}
    facts["streams"] = {"stream:s": stream | hours}
    asked = {"measured": facts, "strategies": ["chain", "fifo"], "budget_bytes": 1e9, "blocks": 120}
    (first, second) = map(json.loads, plane._lines(json.dumps(asked)))
    assert (first["strategy"], second["strategy"]) == ("chain", "fifo")
    assert first["mean_latency_seconds"] >= 0


def test_what_takes_too_long_or_is_too_large_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(t, t % 3) for t in range(20)])
        engine.run_until_idle()
        monkeypatch.setattr(plane, "MOST_SECONDS", 0.01)
        told = Plane(engine).predicted()
        assert told["strategies"] == []
        assert {each["reason"] for each in told["refused"]} == {"the prediction took too long"}
        monkeypatch.setattr(plane, "MOST_OPERATORS", 1)
        with pytest.raises(StateError, match="simulate --from-statistics"):
            Plane(engine).predicted()
