from __future__ import annotations

from matplotlib.figure import Figure

from millpond.lab.path_capacity import starvation


def test_both_cures_bound_the_wait_in_a_short_overload() -> None:
    tables = starvation.run([0], (15.0, 30.0))
    starvation.plot(tables, Figure())
    claims = starvation.check(tables)
    bounded = [claim for claim in claims if "longest wait with" in claim.text]
    assert len(bounded) == 2
    assert all(claim.verdict == "holds" for claim in bounded)


def verdicts(dynamic: float, periodic: float) -> list[str]:
    table = {"overload": [100.0], "none": [90.0]}
    table |= {"dynamic-priority": [dynamic], "periodically-oldest": [periodic]}
    tables = {"a lone tuple": table}
    return [claim.verdict for claim in starvation._few_claims(tables, "a lone tuple")]


def test_a_cure_that_cures_nothing_differs_from_the_paper() -> None:
    assert verdicts(4.0, 4.0) == ["holds", "holds"]
    assert verdicts(89.0, 8.0) == ["differs", "differs"]
    assert verdicts(50.0, 30.0) == ["fails", "fails"]
