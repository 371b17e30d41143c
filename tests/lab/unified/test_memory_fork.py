from __future__ import annotations

from millpond.lab.unified import memory_fork

FIRST = {"all": [True], "rate": [0.2], "best rate": [0.2], "others": [-0.1], "last": [0.3]}
AREAS = {"least": [10.0], "component-based": [11.0], "chain": [12.0]}
PARTS = {
    "slopes say": [memory_fork.PAPER, "O1+O3 | O4 | O2"],
    "found": [memory_fork.PAPER, "O1+O3 | O4 | O2"],
}


def verdicts(**changed: dict[str, list[object]]) -> str:
    tables = {"figure 9": PARTS, "first operators": FIRST, "random forks": AREAS}
    tables |= {name.replace("_", " "): table for name, table in changed.items()}
    return " ".join(claim.verdict for claim in memory_fork.check(tables))


def test_every_sentence_of_the_fork_can_fail() -> None:
    assert verdicts() == "holds holds holds holds holds holds"
    swapped = {**PARTS, "found": PARTS["found"][::-1]}
    assert verdicts(figure_9=swapped) == "fails fails holds holds holds holds"
    for column, value, place in (("all", False, 2), ("others", 0.1, 3), ("rate", 0.1, 4)):
        found = verdicts(first_operators={**FIRST, column: [value]}).split()
        assert found == ["holds"] * place + ["fails"] + ["holds"] * (5 - place)
    assert verdicts(random_forks={**AREAS, "chain": [10.5]}).endswith("holds fails")


def test_a_run_of_few_forks_holds() -> None:
    assert {claim.verdict for claim in memory_fork.check(few_forks())} == {"holds"}


def few_forks() -> dict[str, dict[str, list[object]]]:
    forks = memory_fork.random_forks([7], 10)
    return {
        "figure 9": memory_fork._figure_9([7]),
        "first operators": memory_fork._first_operators(forks),
        "random forks": memory_fork._areas([fork.instance(3) for fork in forks]),
    }
