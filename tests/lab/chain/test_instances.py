from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.chain.instances import (
    Instance,
    envelope_sizes,
    least_sizes,
    queue_sizes,
    random_instance,
    step_sizes,
)

CHART = ((0.0, 1.0), (2.0, 0.75), (3.0, 0.25), (4.0, 0.0))


def test_a_tuple_keeps_its_size_until_the_operator_is_through() -> None:
    assert step_sizes(CHART) == (1.0, 1.0, 0.75, 0.25, 0.0)


def test_on_the_envelope_it_shrinks_evenly() -> None:
    assert envelope_sizes(CHART) == (1.0, 0.75, 0.5, 0.25, 0.0)


def test_the_least_size_takes_each_instant_by_itself() -> None:
    charts = (((0.0, 1.0), (1.0, 0.0)), ((0.0, 1.0), (2.0, 0.0)))
    instance = Instance(charts, ((0,), (0,)))
    assert least_sizes(instance).tolist() == [2.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("on_envelope", [False, True])
def test_no_strategy_is_below_the_least_size(on_envelope: bool) -> None:
    generator = np.random.default_rng(7)
    for _ in range(10):
        instance = random_instance(generator, queries=2, operators=3, tuples=4, longest=2)
        least = least_sizes(instance, on_envelope)
        for strategy in ("chain", "fifo", "round-robin"):
            assert (queue_sizes(instance, strategy, on_envelope) >= least - 1e-9).all()


def test_chain_is_optimal_on_envelopes() -> None:
    generator = np.random.default_rng(3)
    for _ in range(10):
        instance = random_instance(generator, queries=2, operators=3, tuples=4, longest=2)
        chain = queue_sizes(instance, "chain", on_envelope=True)
        assert chain == pytest.approx(least_sizes(instance, on_envelope=True))
