from __future__ import annotations

from tests import ample


def test_answers_are_bit_for_bit_the_same_where_overload_may_be_approximated():
    """A part of ``python -m tests.ample``, which runs all fixtures."""
    answers = tolerant = 0
    for case in ample.groups(of=15):
        wrong, with_rows, of_bounds = ample.looked_at(case)
        assert wrong == [], [case.queries[name] for name in wrong]
        answers, tolerant = answers + len(with_rows), tolerant + len(of_bounds)
    assert answers >= 15
    assert tolerant >= 2
