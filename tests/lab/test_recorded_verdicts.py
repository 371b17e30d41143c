"""The verdicts are those recorded: of quick experiments always, of others in `make test`."""

from __future__ import annotations

import pytest

from millpond.lab.catalogue import experiments
from millpond.lab.record import RECORD, changes, read
from millpond.lab.running import run_one

QUICK = (
    "chain-opening-example",
    "path-capacity-table-2",
    "unified-fork-cases",
    "unified-greedy-example",
    "unified-memory-fork",
    "unified-nested-fork",
    "hmts-queue-placement",
)
LONGER = (
    "chain-context-switches",
    "chain-four-operators",
    "chain-theorem-1",
    "chain-two-operators",
    "path-capacity-theorem-2",
    "path-capacity-theorem-3",
    "unified-idle-waiting",
    "unified-latency-outliers",
    "unified-memory-outliers",
    "unified-mss-optimal",
    "hmts-decoupling",
    "hmts-direct-interoperability",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in LONGER)]
)
def test_verdicts_are_those_recorded(name: str) -> None:
    outcome = run_one(experiments()[name])
    assert [claim for claim in outcome.claims if claim.verdict == "fails"] == []
    assert changes(read(RECORD), [outcome]) == []
