"""Constraints and punctuations that come while data flow, and what came before them."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.execution.operators import freeing
from millpond.storage import state


@pytest.fixture(autouse=True)
def _freed_at_once(monkeypatch):
    monkeypatch.setattr(state, "COMPACT_ROWS", 0)
    monkeypatch.setattr(freeing, "COMPACT_ROWS", 1)


def streams(names, columns="t BIGINT, id INT"):
    engine = Engine()
    for name in names:
        engine.execute(f"CREATE STREAM {name} ({columns}) TIMESTAMP BY t")
    return engine


def advance(engine, names, time):
    for name in names:
        engine.advance(name, time)
    engine.run_until_idle()


def rows(engine):
    return [tuple(row.values()) for row in engine.results("q", "rows")]


@pytest.mark.parametrize("pages", [[[46, 47, 46, 48]], [[46], [47], [46], [48]]])
def test_the_last_time_of_a_value_is_the_largest(pages):
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM B (t BIGINT, id INT) TIMESTAMP BY t DELAY 5 CLUSTERED BY (id) WITHIN 1"
        )
        for page in pages:
            engine.push("B", [(time, 27) for time in page])
        assert engine.violating("B").num_rows == 0


@pytest.mark.parametrize("clause", ["", "REFERENCES O (id) WITHIN 5"])
@pytest.mark.parametrize("is_altered", [True, False])
def test_partners_that_are_ahead_in_time_are_met(clause, is_altered):
    """A tuple of O comes before F references it, and later in time."""
    with Engine() as engine:
        engine.execute("CREATE STREAM O (t BIGINT, id INT) TIMESTAMP BY t DELAY 1000")
        engine.push("O", [(100, 7)])
        own = "" if is_altered else clause
        engine.execute(f"CREATE STREAM F (t BIGINT, id INT) TIMESTAMP BY t {own}")
        engine.execute("CREATE QUERY q AS SELECT F.id FROM F, O WHERE F.id = O.id")
        if is_altered and clause:
            engine.execute(f"ALTER STREAM F ADD {clause}")
        engine.push("F", [(11, 7)])
        for time in range(20, 40):
            engine.push("F", [(time, 1000 + time)])
            advance(engine, "O", time)
        engine.finish()
        assert rows(engine) == [(100, 1, 7)]
        assert engine.violating("O").num_rows == engine.violating("F").num_rows == 0


@pytest.mark.parametrize("length", ["5", "2 ROWS"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT F.id, O.id AS o FROM F, C, O WHERE F.id = C.id AND F.id = O.id",
        "SELECT F.id, O.id AS o FROM F [RANGE 100 SLIDE 10], O WHERE F.id = O.id",
    ],
)
def test_what_was_there_before_a_constraint_is_kept_though_it_begins_later(query, length):
    with streams("FOC") as engine:
        engine.execute(f"CREATE QUERY q AS {query}")
        engine.push("F", [(1, 7)])
        advance(engine, "FOC", 2)
        engine.execute(f"ALTER STREAM F ADD REFERENCES O (id) WITHIN {length}")
        engine.push("C", [(12, 7)])
        for time in range(20, 60):
            engine.push("F", [(time, 1000 + time)])
            engine.push("O", [(time, 2000 + time)])
            advance(engine, "FOC", time)
        engine.push("O", [(70, 7)])
        engine.finish()
        assert rows(engine) == [(70, 1, 7, 7)]


def test_what_a_dropped_constraint_has_closed_is_open_again():
    with streams("AB") as engine:
        for name, length in (("wide", 1000), ("narrow", 0)):
            engine.execute(
                f"ALTER STREAM A ADD CONSTRAINT {name} CLUSTERED BY (id) WITHIN {length} ROWS"
            )
        engine.push("A", [(1, each) for each in range(10)])
        engine.execute("ALTER STREAM A DROP CONSTRAINT narrow")
        advance(engine, "AB", 2)
        engine.execute("CREATE QUERY q AS SELECT A.id, B.t FROM A, B WHERE A.id = B.id")
        engine.push("B", [(3, 3)])
        for time in range(4, 14):
            engine.push("B", [(time, 100 + time)])
            advance(engine, "AB", time)
        engine.push("A", [(20, 3)])
        engine.finish()
        assert rows(engine) == [(20, 1, 3, 3)]


def test_a_constraint_is_relied_on_though_another_says_the_same():
    with streams("FGO") as engine:
        engine.execute("ALTER STREAM G ADD CONSTRAINT g REFERENCES O (id) WITHIN 5")
        engine.execute("CREATE QUERY q AS SELECT F.id FROM F, G, O WHERE F.id=G.id AND G.id=O.id")
        engine.execute("ALTER STREAM F ADD CONSTRAINT f REFERENCES O (id) WITHIN 5")
        for time in range(6):
            for name in "FG":
                engine.push(name, [(10 * time, time)])
            advance(engine, "FGO", 10 * time)
        with pytest.raises(CqlError, match="constraint g of stream G has freed rows of q that"):
            engine.execute("ALTER STREAM G DROP CONSTRAINT g")


BIDS = """
CREATE STREAM Bids (at BIGINT, auction INT, closes STRING) TIMESTAMP BY at DELAY 9
  PUNCTUATED BY (closes);
CREATE QUERY q AS SELECT auction, count(*) AS n FROM Bids GROUP BY auction;
CREATE QUERY by_time AS SELECT at, count(*) AS n FROM Bids GROUP BY at;
"""


@pytest.mark.parametrize("cut", [2, 3])
def test_who_relies_on_a_punctuation_stops_wherever_pages_are_cut(cut):
    tuples = [(1, 1, None), (2, None, "auction = 1"), (3, 1, None)]
    with Engine() as engine:
        engine.execute(BIDS)
        for page in (tuples[:cut], tuples[cut:]):
            engine.push("Bids", page)
        with pytest.raises(StateError, match="contradicts punctuation"):
            engine.run_until_idle()
        assert [failure.query for failure in engine.failures()] == ["q"]
        assert engine.violating("Bids").num_rows == 1


@pytest.mark.parametrize("cut", [2, 3])
def test_a_tuple_behind_a_punctuation_of_time_stops_nobody(cut):
    tuples = [(10, 1, None), (10, None, "at <= 9"), (5, 1, None)]
    with Engine() as engine:
        engine.execute(BIDS)
        for page in (tuples[:cut], tuples[cut:]):
            engine.push("Bids", page)
            engine.run_until_idle()
        engine.finish()
        assert not engine.failures()
        assert (engine.late("Bids").num_rows, engine.violating("Bids").num_rows) == (1, 0)
        assert [row["n"] for row in engine.results("by_time", "rows")] == [1]
