from __future__ import annotations

from matplotlib.figure import Figure

from millpond.lab.chain import response_time
from millpond.lab.chain.response_time import COLUMNS, RIVALS
from millpond.lab.experiment import Tables


def test_the_same_tuples_come_out_of_every_strategy() -> None:
    tables = response_time.run([0], seconds=1.5)
    response_time.plot(tables, Figure())
    equal = [claim for claim in response_time.check(tables) if "outputs in the end" in claim.text]
    assert [claim.verdict for claim in equal] == ["holds"] * 5


def made_up(latency: float, inside: float, seeds: int = 10) -> Tables:
    """FIFO with a latency of 1 s and 100 results inside the bursts, its rivals with these."""
    names = ("fifo", *RIVALS)
    table: dict[str, list[object]] = {
        "query": ["two operators"] * len(names) * seeds,
        "seed": [seed for seed in range(seeds) for _ in names],
        "strategy": list(names) * seeds,
    }
    rivals = [latency, 200, inside]
    rows = [[1.0, 200, 100] if name == "fifo" else rivals for name in names] * seeds
    return {"runs": table | {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}}


def verdicts(tables: Tables) -> str:
    return " ".join(claim.verdict for claim in response_time.check(tables))


def test_fifo_is_said_to_be_soonest_and_ahead() -> None:
    holds, differs, fails = ("holds " * 3, "differs " * 3, "fails " * 3)
    assert verdicts(made_up(1.2, 90)) == (holds + "holds " + holds).strip()
    assert verdicts(made_up(0.9, 100.5)) == (differs + "holds " + differs).strip()
    assert verdicts(made_up(0.8, 90)) == (fails + "holds " + holds).strip()
    assert verdicts(made_up(1.2, 150)) == (holds + "holds " + fails).strip()
