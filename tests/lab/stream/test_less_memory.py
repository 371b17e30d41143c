from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from millpond.lab.stream.adherence import KS, ORDERED
from millpond.lab.stream.less_memory import CONSTRAINTS, RESOURCES, check, grown, on_disk, plot
from millpond.lab.tables import table_of


def test_files_that_grow_or_are_replaced_count() -> None:
    log, state = (Path("log"), 1), (Path("state"), 2)
    assert grown({log: 10, state: 100}, {log: 15, state: 90, (Path("state"), 3): 40}) == 45


def test_a_store_holds_less_where_streams_are_ordered() -> None:
    streams = ORDERED.streams(0, 7)
    held, written = on_disk(streams, ORDERED.clauses(0), pages=4)
    held_without, written_without = on_disk(streams, ("", ""), pages=4)
    assert 0 < held < held_without <= written_without
    assert held <= written < written_without


def test_one_that_does_not_save_is_noticed() -> None:
    rows = [(name, KS[0], 0, 0.5, 0.5) for name in CONSTRAINTS]
    rows[-1] = (rows[-1][0], KS[0], 0, 0.5, 1.0)
    tables = {"with over without": table_of(("constraint", "k", "seed", *RESOURCES), rows)}
    plot(tables, Figure())
    assert [claim.verdict for claim in check(tables)] == ["holds"] * 7 + ["fails"]
