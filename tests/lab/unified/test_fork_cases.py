import pytest

from millpond.lab.unified import fork_cases


def test_areas_follow_their_formulas_but_for_the_printed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fork_cases, "TUPLES", 20)
    monkeypatch.setattr(fork_cases, "SECONDS", (2.0, 3.0, 5.0))
    tables = fork_cases.run([0])
    found = [claim.verdict for claim in fork_cases.check(tables)]
    assert found == ["holds", "differs", "holds", "holds"]
    areas = tables["areas"]
    areas["partitioned"] = [area - 20**2 * 3.0 for area in areas["partitioned"]]
    assert fork_cases.check(tables)[1].verdict == "fails"
