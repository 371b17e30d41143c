"""The verdicts are those recorded: of quick experiments always, of longer ones in `make test`, of
some on fewer seeds than their own, of all on all seeds in `make fuzz`."""

from __future__ import annotations

import pytest

from millpond.lab.catalogue import experiments
from millpond.lab.record import RECORD, changes, read
from millpond.lab.running import run_one

QUICK = (
    "stream-opening-example",
    "chain-opening-example",
    "chain-propositions",
    "path-capacity-first-result",
    "path-capacity-table-2",
    "unified-areas",
    "unified-fork-cases",
    "unified-greedy-example",
    "unified-memory-fork",
    "unified-nested-fork",
    "hmts-queue-placement",
)
LONGER = (
    "chain-four-operators",
    "chain-theorem-1",
    "chain-two-operators",
    "path-capacity-theorem-2",
    "path-capacity-theorem-3",
    "unified-idle-waiting",
    "unified-latency-outliers",
    "unified-mss-optimal",
    "hmts-decoupling",
    "stream-ordered-arrival",
    "stream-clustered-arrival",
    "stream-many-one-join",
    "stream-referential-integrity",
)
FEW_SEEDS = {
    name: 1 for name in (*QUICK, *LONGER) if name.startswith(("stream", "unified-areas"))
} | dict.fromkeys(
    (
        "chain-propositions",
        "chain-theorem-1",
        "chain-two-operators",
        "chain-four-operators",
        "path-capacity-theorem-2",
        "path-capacity-theorem-3",
        "unified-idle-waiting",
        "unified-memory-fork",
        "unified-mss-optimal",
        "unified-nested-fork",
    ),
    1,
)
"""On so many seeds here, and on all in `make fuzz`. Those of the STREAM paper run the engine."""


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in LONGER)]
)
def test_verdicts_are_those_recorded(name: str) -> None:
    outcome = run_one(experiments()[name], FEW_SEEDS.get(name))
    assert [claim for claim in outcome.claims if claim.verdict == "fails"] == []
    assert changes(read(RECORD), [outcome]) == []
