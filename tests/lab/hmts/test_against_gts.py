import pytest

from millpond.lab.hmts.against_gts import check, run
from millpond.lab.hmts.expensive_selection import STRATEGIES, Elements, simulated

FEW = Elements.drawn(seed=11, share=0.05)


def test_elements_are_the_same_for_the_same_seed() -> None:
    again = Elements.drawn(seed=11, share=0.05)
    assert again.gap_seconds.tolist() == FEW.gap_seconds.tolist()
    assert again.narrow_keeps.tolist() == FEW.narrow_keeps.tolist()
    assert FEW.reaching >= 2


@pytest.mark.parametrize("name", ["fifo", "chain"])
def test_a_thread_that_also_emits_needs_both_times(name: str) -> None:
    record = simulated("same thread", name, FEW)
    expected = FEW.emission_seconds + 2 * FEW.reaching
    assert record.finished_seconds == pytest.approx(expected, rel=0.01)


def test_a_second_thread_overlaps_emission_and_the_expensive_selection() -> None:
    one, two = simulated("same thread", "chain", FEW), simulated("same thread", "hmts", FEW)
    assert two.finished_seconds < one.finished_seconds - FEW.reaching


def test_all_strategies_give_the_same_results() -> None:
    kept = {
        simulated(source, name, FEW).outputs
        for source in ("autonomous", "same thread")
        for name in STRATEGIES
    }
    assert kept == {FEW.expensive_keeps[: FEW.reaching].sum()}


def test_hmts_holds_no_more_than_chain_beside_an_autonomous_source() -> None:
    ours, chain = (simulated("autonomous", name, FEW) for name in ("hmts", "chain"))
    assert ours.memory.mean(8.0) <= chain.memory.mean(8.0)


def test_a_short_run_does_not_pass_for_the_figure() -> None:
    claims = check(run([11], share=0.05))
    ends = [
        claim for claim in claims if "160 seconds" in claim.expected or "260 s" in claim.expected
    ]
    assert len(ends) == 6
    assert not any(claim.holds for claim in ends)
