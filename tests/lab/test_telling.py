from millpond.lab.record import Change
from millpond.lab.telling import by_paper, change_line, counts, line, row, summary
from tests.lab.made_up import DIFFERS, FAILS, HOLDS, outcome


def test_all_three_verdicts_are_counted() -> None:
    found = [outcome("pigs", HOLDS, DIFFERS, FAILS), outcome("cows", HOLDS)]
    assert counts(found) == {"holds": 2, "differs": 1, "fails": 1}
    assert summary(found) == "2 experiments, 4 claims: 2 hold, 1 differ, 1 fail"
    assert summary(found[1:]) == "1 experiment, 1 claims: 1 hold, 0 differ, 0 fail"


def test_several_papers_are_counted_apart() -> None:
    found = [outcome("pigs", HOLDS, DIFFERS), outcome("cows", HOLDS), outcome("sows", HOLDS)]
    papers = {"pigs": "Chain", "cows": "HMTS", "sows": "Chain"}
    assert by_paper(found, papers) == [
        "Chain: 2 experiments, 3 claims: 2 hold, 1 differ, 0 fail",
        "HMTS: 1 experiment, 1 claims: 1 hold, 0 differ, 0 fail",
    ]
    assert by_paper(found[:1], papers) == []


def test_what_differs_is_told_with_the_papers_words_and_why() -> None:
    assert line("pigs", DIFFERS) == (
        'differs pigs: pigs fly | expected "pigs fly" | measured 1 cm | instead they jump | '
        "why: no <wings>"
    )
    assert row("pigs", DIFFERS)["why"] == "no <wings>"


def test_what_holds_or_fails_is_told_without() -> None:
    assert line("pigs", HOLDS) == "holds   pigs: water is wet | expected wet | measured wet"
    assert line("pigs", FAILS) == "FAILS   pigs: pigs sing | expected yes | measured no"
    assert "instead" not in row("pigs", FAILS)


def test_a_change_says_what_was_and_what_is() -> None:
    told = change_line(Change("pigs", "pigs fly", "holds", "differs"))
    assert told == "CHANGED pigs: pigs fly | was holds, is differs"
