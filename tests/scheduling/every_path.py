"""All operator paths of a plan, one by one, for tests that hold what is told from edges to them."""

from __future__ import annotations

from collections.abc import Iterator

from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot


def every_path(plan: PlanSnapshot) -> tuple[OperatorPath, ...]:
    """Every way from a stream to an output, in order."""
    leaves = ((each.id, stream) for each in plan.operators for stream in each.streams)
    return tuple(path for leaf, stream in leaves for path in _from(plan, stream, leaf))


def _from(plan: PlanSnapshot, stream: str, leaf: int) -> Iterator[OperatorPath]:
    stack: list[tuple[int, ...]] = [(leaf,)]
    while stack:
        so_far = stack.pop()
        last = plan.by_id[so_far[-1]]
        if last.is_output:
            yield OperatorPath(stream, so_far)
        stack.extend((*so_far, reader) for reader in reversed(last.downstream))
