"""DISTINCT, EXCEPT and INTERSECT agree with their definitions at every instant, however cut."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.counts import RULES, CountKernel, net
from millpond.schema import BEGINNING, FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, Life, at, cuts, lives, meaning, run

TYPES = (pa.int32(), pa.string())
ROWS = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", "b", None]))
NUMBERS = [pa.field(n, pa.int64()) for n in ("_ts", "_te", "_w", "_side")]
EVENTS = pa.schema([pa.field("k0", TYPES[0]), pa.field("k1", TYPES[1]), *NUMBERS])

DEFINITIONS = {
    "distinct": lambda left, right: Counter(set(left)),
    "except": lambda left, right: Counter(set(left) - set(right)),
    "except_all": lambda left, right: Counter(left) - Counter(right),
    "intersect": lambda left, right: Counter(set(left) & set(right)),
    "intersect_all": lambda left, right: Counter(left) & Counter(right),
}


@pytest.mark.parametrize("rule", RULES)
@examples(40)
@given(data=st.data())
def test_a_rule_holds_at_every_instant(rule, data):
    sides = 1 if rule == "distinct" else 2
    history = data.draw(lives(ROWS, may_open=True, sides=sides, from_beginning=True))
    output = run(CountKernel(TYPES, rule), history, EVENTS, ["k0", "k1"], data.draw(cuts()))
    expected = {
        i: dict(DEFINITIONS[rule](at(history, i), at(history, i, side=1))) for i in INSTANTS
    }
    assert meaning(output) == expected


def test_a_row_that_is_gone_is_forgotten():
    history = [Life((1, "a"), 3, 5), Life((2, "a"), 3, FOREVER)]
    kernel = CountKernel(TYPES, "distinct")
    nothing = kernel.state_schema.empty_table()
    events = pa.Table.from_pylist(
        [{"k0": x.row[0], "k1": "a", "_ts": x.start, "_te": x.end, "_w": 1, "_side": 0}
         for x in history],
        EVENTS,
    )  # fmt: skip
    _, state = kernel.run(events, nothing, BEGINNING, 10)
    assert dict(zip(state["k0"].to_pylist(), state["_n"].to_pylist(), strict=True)) == {1: 0, 2: 1}


@examples(40)
@given(lives(ROWS, may_open=True), st.integers(0, 30))
def test_net_changes_are_the_differences_between_instants(history, until):
    elements = [
        {"k0": x.row[0], "k1": x.row[1], "_ts": ts, "_te": te, "_w": w}
        for x in history
        for ts, te, w in x.elements()
        if ts <= until
    ]
    table = pa.Table.from_pylist(elements, pa.schema([*EVENTS][:5]))
    instants = (BEGINNING, *range(60))
    found = {i: {} for i in instants}
    for change in net(table, ["k0", "k1"], until).to_pylist():
        row = (change["k0"], change["k1"])
        assert row not in found[change["_ts"]]
        found[change["_ts"]][row] = change["_w"]
    for earlier, later in pairwise(instants):
        change = Counter(at(history, later))
        change.subtract(at(history, earlier))
        expected = {row: w for row, w in change.items() if w}
        assert found[later] == (expected if later <= until else {})
