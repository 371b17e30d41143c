from millpond.lab.unified.greedy_example import check, run


def test_the_example_of_three_tuples_costs_48_and_41() -> None:
    claims = check(run([0]))
    assert [claim.measured for claim in claims] == ["c9 c10 c1: 48", "c10 c1 c9: 41", "41"]
    assert {claim.verdict for claim in claims} == {"holds"}


def test_a_wrong_total_is_noticed() -> None:
    tables = run([0])
    latencies = {**tables["latencies"], "latency": [0.0] * 6}
    found = check({**tables, "latencies": latencies})
    assert [claim.verdict for claim in found] == ["fails", "fails", "holds"]
