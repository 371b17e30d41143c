from millpond.lab.hmts import direct_interoperability, many_queries
from millpond.lab.hmts.selections import CONFIGURATIONS, simulated


def test_every_configuration_keeps_the_same_elements() -> None:
    assert len({simulated(name, 20_000).outputs for name in CONFIGURATIONS}) == 1


def test_direct_interoperability_is_ahead_of_ots_and_ots_of_gts() -> None:
    di, ots, chain, _ = (simulated(name, 50_000).finished_seconds for name in CONFIGURATIONS)
    assert 1.25 * di < ots < 0.6 * chain


def test_without_queue_costs_two_processors_win() -> None:
    di, ots = (
        simulated(name, 50_000, queue_seconds=0.0).finished_seconds for name in ("di", "ots")
    )
    assert ots < di


def test_the_gap_grows_with_the_queries() -> None:
    tables = many_queries.run([0], queries=(1, 2, 6), elements=20_000)
    growing, more, _ = many_queries.check(tables)
    assert growing.holds
    assert more.holds


def test_claims_of_figure_7_compare_order_and_growth() -> None:
    tables = direct_interoperability.run([0], (50_000, 100_000), (0.0, 1.5e-6))
    *found, _ = (claim.holds for claim in direct_interoperability.check(tables))
    assert found == [True, True, True, True]


def test_figure_7_claims_nothing_where_queues_are_free() -> None:
    seconds = {"elements": [1.0, 2.0], "di": [2.0, 4.0], "ots": [1.0, 2.0]}
    seconds |= {"gts chain": [2.0, 4.0], "gts fifo": [2.0, 4.0]}
    costs = {"queue_seconds": [0.0, 1e-6], "di": [2.0, 2.1], "ots": [1.0, 1.5]}
    claims = direct_interoperability.check({"seconds": seconds, "queue cost": costs})
    assert [claim.holds for claim in claims] == [False, True, True, True, False]
