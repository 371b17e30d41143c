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
