"""CLUSTERED BY, UNIQUE and REFERENCES of numbers: what is in arrays is what one by one is."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.catalog import Constraint
from millpond.intake.looking import looked_at
from millpond.intake.numbered import (
    NumberedClusters,
    NumberedReferenced,
    NumberedReferences,
    NumberedUniqueness,
    are_numbers,
    numbers_of,
)
from millpond.intake.occurrences import Clusters, Keys, Referenced, References, Uniqueness
from millpond.intake.orderings import Values
from millpond.intake.places import NOWHERE, Places, Sightings
from millpond.schema import Type

NUMBERS = st.lists(st.one_of(st.none(), st.integers(-2, 9)), max_size=60)


def column_of(values):
    is_there = None if None not in values else np.array([value is not None for value in values])
    return Values(np.array([value or 0 for value in values], dtype=np.int64), is_there)


def looked(watched, column, arrived, count):
    return looked_at([watched], [column], np.zeros(count, dtype=np.int64), arrived)


class Both:
    """A stream by a constraint in arrays and one by one; both remember so many values."""

    def __init__(self, kind, within, limit, on_violation):
        self.made = {"clustered": NumberedClusters, "unique": NumberedUniqueness}.get(
            kind, NumberedReferences
        )
        plain = {"clustered": Clusters, "unique": Uniqueness}.get(kind, References)
        constraint = Constraint(
            "c", 0, within, True, on_violation, kind=kind, target="O", target_columns=(0,)
        )
        self.limit, self.arrived = limit, 0
        self.arrays, self.plain = (
            self.limited(self.made(constraint)),
            self.limited(plain(constraint)),
        )

    def limited(self, occurring):
        getattr(occurring, "closed", occurring.came).limit = self.limit
        return occurring

    def take(self, values):
        count = len(values)
        one = looked(self.arrays, column_of(values), self.arrived, count)
        other = looked(self.plain, Keys(values), self.arrived, count)
        assert one.broken.tolist() == other.broken.tolist()
        assert (one.measured, one.grown) == (other.measured, other.grown)
        self.arrived += int((other.broken < 0).sum())
        for each, found in ((self.arrays, one), (self.plain, other)):
            risen = each.in_reach(found.risen[0], self.arrived)
            each.took(risen, 0, found.measured[0], None, found.grown[0])
        self.close()
        forbidden = [each.forbidden(self.arrived) for each in (self.arrays, self.plain)]
        assert sorted(forbidden[0]) == sorted(forbidden[1])

    def close(self):
        if isinstance(self.plain, Clusters):
            shut = self.arrays.close(self.arrived).tolist()
            assert shut == self.plain.close(self.arrived)

    def meet(self, values):
        """Tuples of the stream that is referenced come."""
        one = looked(
            NumberedReferenced("c", self.arrays, self.arrived), column_of(values), 0, len(values)
        )
        other = looked(Referenced("c", self.plain, self.arrived), Keys(values), 0, len(values))
        assert one.broken.tolist() == other.broken.tolist()
        assert one.measured == other.measured

    def begin_anew(self):
        """What is remembered is read from a log, of now or of before."""
        (mine, *rest), (others, *_) = self.arrays.facts, self.plain.facts
        noted, listed = (mine[0], others[0]) if isinstance(mine, tuple) else (mine, others)
        place = 2 if isinstance(self.plain, Clusters) else 1
        assert sorted(zip(noted.values.tolist(), noted.places.tolist(), strict=True)) == sorted(
            (each[0], each[place]) for each in listed
        )
        self.limit = getattr(self.plain, "closed", self.plain.came).limit
        for told in (noted.to_data(), json.loads(json.dumps(listed))):
            self.arrays = self.limited(self.made(self.plain.constraint))
            self.arrays.took((told, ()) if isinstance(mine, tuple) else told, *rest[:3])
            self.arrays.widened = self.plain.widened
            if isinstance(self.plain, Clusters):
                self.arrays.close(self.arrived)


@pytest.mark.parametrize("kind", ["clustered", "unique", "references"])
@given(
    NUMBERS,
    st.integers(0, 4),
    st.integers(1, 6),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from(("count", "widen")),
)
def test_arrays_know_what_is_known_one_by_one(
    kind, values, within, limit, page, begins_anew, on_violation
):
    is_otherwise = kind == "references" or on_violation == "widen"  # if a page is forgotten in part
    both = Both(kind, within, 99 if is_otherwise else limit, on_violation)
    for start in range(0, len(values), page):
        both.take(values[start : start + page])
        if kind == "references":
            both.meet(values[-start - page :][:page])
        if begins_anew:
            both.begin_anew()


@given(st.lists(st.lists(st.integers(0, 20), max_size=8)), st.integers(0, 60), st.booleans())
def test_places_are_those_of_the_first_or_the_last(pages, since, keeps_first):
    places, known, place = Places(keeps_first), {}, 0
    for page in pages:
        for value in page:
            if place >= since and not (keeps_first and value in known):
                known[value] = place
            place += 1
        come = np.array(page, dtype=np.int64), np.arange(place - len(page), place)
        places.since = since if place > since else 0
        places.note(Sightings(*come))
    places.since = since
    found = places.of(np.arange(21))
    assert found.tolist() == [known.get(value, NOWHERE) for value in range(21)]
    assert [value in places for value in range(21)] == (found != NOWHERE).tolist()


def test_two_columns_of_32_bits_are_one_number():
    ends = [-(2**31), -1, 0, 1, 2**31 - 1]
    pairs = [(a, b) for a in ends for b in ends]
    columns = [pa.array([pair[place] for pair in pairs], pa.int32()) for place in (0, 1)]
    found = numbers_of(pa.table(columns, ["a", "b"]), (0, 1))
    assert len(set(found.numbers.tolist())) == len(pairs)
    some = pa.table({"a": pa.array([1, None], pa.int32()), "b": pa.array([2, 2], pa.int32())})
    assert numbers_of(some, (0, 1)).is_there.tolist() == [True, False]
    assert are_numbers([Type.INT, Type.DATE])
    assert not are_numbers([Type.INT, Type.BIGINT])
    assert not are_numbers([Type.STRING])


# -- texts, and numbers that do not fit together -----------------------------------------------

CLAUSES = {
    "O": "UNIQUE (a, b) WITHIN 2 ROWS CLUSTERED BY (a) WITHIN 3 ROWS",
    "F": "REFERENCES O (a, b) WITHIN 4 ROWS CLUSTERED BY (a) WITHIN 3 ROWS",
}


def answered(kind, clauses):
    """What a join of pairs answers, what was measured and how many tuples broke a constraint."""
    with Engine({"watch": "off"}) as engine:
        for name, clause in clauses.items():
            columns = f"(t BIGINT, a {kind}, b {kind}) TIMESTAMP BY t"
            engine.execute(f"CREATE STREAM {name} {columns} {clause}")
        engine.execute("CREATE QUERY q AS SELECT O.t, F.t FROM O, F WHERE O.a = F.a AND O.b = F.b")
        form = str if kind == "STRING" else int
        for n in range(60):
            key = (form(n // 2 if n % 11 else n // 3), form(n % 2))
            engine.push("F", [(n, *key)])
            if n >= 2:
                engine.push("O", [(n, form((n - 2) // 2), form(n % 2))])
        engine.finish()
        seen = [
            (row["name"], row["measured"], row["violations"])
            for row in engine.execute("SHOW CONSTRAINTS")[0].to_pylist()
        ]
        return sorted(map(str, engine.results("q").to_pylist())), seen


def test_texts_are_looked_at_as_numbers_are():
    counting = {name: _counting(clause) for name, clause in CLAUSES.items()}
    numbers, *others = [answered(kind, counting) for kind in ("INT", "BIGINT", "STRING")]
    assert others == [numbers] * 2
    assert sum(violations for *_, violations in numbers[1]) > 0


def _counting(clause):
    """With every constraint ON VIOLATION COUNT."""
    return clause.replace(" CLUSTERED", " ON VIOLATION COUNT CLUSTERED") + " ON VIOLATION COUNT"


def test_a_log_of_before_has_pairs_of_numbers():
    told = Sightings.read([[[3, -1], 5, 7], [[-2, 4], 6, 6]])
    columns = [pa.array(each, pa.int32()) for each in ([3, -2], [-1, 4])]
    assert (
        told.values.tolist() == numbers_of(pa.table(columns, ["a", "b"]), (0, 1)).numbers.tolist()
    )
    assert told.places.tolist() == [7, 6]
