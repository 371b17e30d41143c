import pytest
from matplotlib.figure import Figure

from millpond.lab.hmts.against_gts import check, plot, run
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
    tables = run([11], share=0.05)
    plot(tables, Figure())
    ends = [claim for claim in check(tables) if "end of" in claim.text]
    assert len(ends) == 8
    assert not any(claim.holds for claim in ends if "behind" not in claim.text)


def test_the_last_elements_are_filtered_out() -> None:
    drawn = Elements.drawn(seed=3, reaching=50)
    assert drawn.reaching == 50
    assert drawn.narrow_keeps[-2000:].sum() == 0


def test_chain_serves_as_fifo_while_it_profiles() -> None:
    late = simulated("autonomous", "chain", FEW, profiling_seconds=4.0)
    fifo, chain = (simulated("autonomous", name, FEW) for name in ("fifo", "chain"))
    times = [0.01, 0.5, 1.5]
    assert late.memory.at(times).tolist() == fifo.memory.at(times).tolist()
    assert late.memory.at(times).tolist() != chain.memory.at(times).tolist()
    assert late.outputs == chain.outputs
