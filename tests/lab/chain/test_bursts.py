from __future__ import annotations

from dataclasses import replace

from millpond.lab.chain import four_operators
from millpond.lab.chain.bursts import run_setting
from millpond.lab.chain.sentences import STRATEGIES
from millpond.lab.tables import picked


def test_chain_is_ahead_where_a_selective_operator_is_sandwiched() -> None:
    tables = run_setting(replace(four_operators.SETTING, seconds=8.0), seeds=[0])
    assert set(tables["summary"]["strategy"]) == set(STRATEGIES)
    peaks = {
        name: picked(tables["summary"], "peak", {"workload": "bursts", "strategy": name})[0]
        for name in STRATEGIES
    }
    assert min(peaks, key=lambda name: peaks[name]) == "chain"
