"""The live experiments say what was measured; what is measured the benchmarks show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from millpond.lab.live import burst, hmts, real_threads
from millpond.lab.live.bursts import STRATEGIES, Outcome, Run
from millpond.lab.live.threads import MODES, TWO_TASKS, Case, page


def run_of(strategy: str, peak: float, latency: float) -> Run:
    outcome = Outcome(peak, peak / 2, latency, latency, latency, latency, 10.0)
    return Run(outcome, {"strategy": strategy}, [], [])


def test_bursts_become_claims_with_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"fifo": (9e6, 2.0), "chain": (2e6, 1.5), "path-capacity": (5e6, 1.0)}

    def measured(text: str, *_: Any) -> Run:
        return run_of(text, *figures.get(text.partition("(")[0], (5e6, 1.2)))

    monkeypatch.setattr(burst, "measured", measured)
    monkeypatch.setattr(burst, "overloading_rows", lambda: 3_000.0)
    tables = burst.run([1, 2, 3])
    assert list(tables["strategies"]["strategy"]) == list(STRATEGIES)
    claims = {claim.text: claim for claim in burst.check(tables)}
    assert claims["chain's peak to fifo's"].verdict == "holds"
    assert claims["chain's peak to fifo's"].measured == "0.22"
    late = claims["auto's mean latency to the better of chain and path-capacity"]
    assert (late.verdict, late.measured) == ("fails", "1.20")
    burst.plot(tables, Figure())


def test_modes_become_claims_with_their_numbers() -> None:
    seconds = {"di": [1.0, 1.0, 1.0], "gts": [3.0, 1.2, 1.2], "ots": [2.0, 1.1, 1.5]}
    table = {"case": ["one slow operator", "a cheap chain", "many cheap queries"], **seconds}
    rival = {"case": ["one slow operator"], "seconds": [1.4]}
    tables = {"seconds": table | {"hmts": [1.5, 1.0, 1.6]}, TWO_TASKS: rival}
    claims = [(claim.measured, claim.verdict) for claim in hmts.check(tables)]
    assert claims == [
        ("2.00 times", "holds"),
        ("1.20 times", "holds"),
        ("1.10 times", "holds"),
        ("1.50 times", "holds"),
        ("0.94 times", "fails"),
    ]
    figure = Figure()
    hmts.plot(tables, figure)
    assert [len(chart.patches) for chart in figure.axes] == [5, 4, 4]


def test_every_mode_does_a_case() -> None:
    case = Case("few", "CREATE QUERY q AS SELECT key FROM S WHERE value > 0.5;", 200, 100)
    assert page(0, 5).num_rows == 5
    assert all(case.seconds(None, mode) > 0 for mode in (*MODES, TWO_TASKS))
    assert case.modes == MODES  # in the driver there are no tasks
    assert replace(case, settings={"driver_rows": 0}).modes == (*MODES, TWO_TASKS)


def test_threads_of_the_machine_pass_what_one_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    source = real_threads.chunks(3)
    wanted = {int(number) for chunk in source for number in chunk}
    for factor, selectivity in zip(real_threads.FACTORS, real_threads.SELECTIVITIES, strict=True):
        wanted = {each for each in wanted if each * factor % 1000 < 1000 * selectivity}
    for passed in real_threads.MODES.values():
        assert passed(3, source) == 3 * len(wanted)
    monkeypatch.setattr(real_threads, "QUERIES", (1, 4))
    monkeypatch.setattr(
        real_threads, "seconds", lambda mode, queries, _: queries ** (1 + (mode == "OTS") / 2)
    )
    tables = real_threads.run([1, 2])
    claims = real_threads.check(tables)
    assert [claim.verdict for claim in claims] == ["holds", "holds"]
    slow = tables["rounds"]["OTS"]
    slow[:] = [2.0 for _ in slow]  # less than twice as long with four queries, of which DI has 4.0
    assert [claim.verdict for claim in real_threads.check(tables)] == ["fails", "fails"]
    real_threads.plot(tables, Figure())
