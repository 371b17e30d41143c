from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.path_capacity.physical_plans import (
    CHEAP_PROJECTION,
    PROJECTION,
    SELECTION,
    UNSELECTIVE,
    Step,
    apart,
    arrivals,
    capacities,
    drawn_paths,
    first,
    last,
    merged,
    segments,
    simulated,
    work_seconds,
)
from millpond.lab.path_capacity.plans import SENTENCES, check
from millpond.scheduling.registry import make

PATH = (Step("0", 0.004, 0.5), Step("1", 0.002, 0.9))


def test_what_stands_first_narrows_all_behind_it() -> None:
    ((*steps,),) = first((PATH,), SELECTION, PROJECTION)
    assert [step.name for step in steps] == ["selection", "projection", "0", "1"]
    assert [step.tuple_bytes for step in steps] == [1.0, 0.5, 0.5, 0.5]
    assert last((PATH,), SELECTION) == ((*PATH, SELECTION),)


def test_a_projection_that_is_merged_costs_as_much_as_apart() -> None:
    (short,), (long,) = merged((PATH,)), apart((PATH,))
    assert (len(short), len(long)) == (2, 3)
    assert long[1] == CHEAP_PROJECTION
    assert work_seconds(short) == pytest.approx(work_seconds(long))


def test_capacities_are_those_of_the_formulas() -> None:
    (path,) = first((PATH,), SELECTION)
    found = capacities(path)
    work = 0.002 + 0.1 * (0.004 + 0.5 * 0.002)
    assert found["path"].processing == pytest.approx(1 / work)
    assert found["path"].memory_release == pytest.approx(1 / work)
    assert found["segment"].processing == pytest.approx(500)
    assert found["segment"].memory_release == pytest.approx(450)
    assert capacities((UNSELECTIVE, *PATH))["segment"].memory_release < 450


def test_a_path_is_cut_where_less_is_freed() -> None:
    assert segments((Step("0", 0.001, 0.1), Step("1", 0.010))) == 2
    assert segments((Step("0", 0.010, 0.9), Step("1", 0.001, 0.1))) == 1


def test_plans_whose_operators_meet_the_same_tuples_pass_the_same_ones() -> None:
    paths = drawn_paths(np.random.default_rng(7))
    arriving = arrivals(paths, 7)
    counts = {
        simulated(plan, make(name), arriving, 7).outputs
        for plan in (paths, merged(paths), apart(paths))
        for name in ("fifo", "segment")
    }
    assert len(counts) == 1


def test_each_sentence_is_judged_by_itself() -> None:
    table = {sentence.text: [1.0] * 10 for sentence in SENTENCES}
    table["segments of a shorter path over those of the longer one"] = [0.8] * 8 + [1.2] * 2
    found = {claim.text: claim.verdict for claim in check({"by seed": table})}
    assert found["segments of a shorter path over those of the longer one"] == "fails"
    assert found["segment, shorter path: latency over that of the longer one"] == "holds"
    assert found[
        "processing capacity of a segment whose leaf passes a tenth, over nine tenths"
    ] == ("differs")
