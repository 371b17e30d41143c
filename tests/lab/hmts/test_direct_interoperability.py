from __future__ import annotations

from millpond.lab.experiment import Tables
from millpond.lab.hmts.direct_interoperability import check, run

COSTS = [0.0, 0.75e-6, 1.0e-6, 1.5e-6, 2.0e-6, 3.0e-6]


def made_up(leads: list[float], gts: float = 4.0) -> Tables:
    """One number of elements and its double; so far is DI ahead by the cost of a queue."""
    seconds = {"elements": [1.0, 2.0], "di": [1.0, 2.0], "ots": [1.4, 2.8]}
    seconds |= {"gts chain": [gts, 2 * gts], "gts fifo": [gts, 2 * gts]}
    costs = {"queue_seconds": COSTS, "di": [1.0] * 6, "ots": [1 + lead for lead in leads]}
    return {"seconds": seconds, "queue cost": costs | {"gts chain": [gts] * 6}}


def verdicts(tables: Tables) -> str:
    return " ".join(claim.verdict for claim in check(tables))


def test_the_lead_is_evidence_only_if_it_does_not_hang_on_the_fitted_cost() -> None:
    fitted = made_up([-0.5, 0.0, 0.14, 0.4, 0.6, 0.9])
    assert verdicts(fitted).startswith("differs differs holds holds holds")
    robust = made_up([-0.5, 0.38, 0.39, 0.4, 0.4, 0.41])
    assert verdicts(robust).startswith("holds holds holds")
    never = made_up([-0.5, -0.4, -0.3, -0.2, -0.1, -0.05])
    assert verdicts(never).startswith("fails fails holds")


def test_ots_must_be_significantly_faster_than_gts_at_every_queue_cost() -> None:
    tables = made_up([-0.5, 0.0, 0.14, 0.4, 0.6, 0.9], gts=2.0)
    assert verdicts(tables).split()[2] == "fails"


def test_a_short_run_shows_the_order() -> None:
    found = check(run([0], (50_000, 100_000), (0.0, 0.75e-6, 1.5e-6, 3.0e-6)))
    assert [claim.verdict for claim in found[1:5]] == ["differs", *["holds"] * 3]
