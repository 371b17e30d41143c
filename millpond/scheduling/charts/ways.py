"""The ways that tuples take through a plan, told from its edges: n operators may have 2^n of them.

An operator path leads from a stream to an output. Paths are in order: by the place of their first
operator in the plan and of its stream, then reader by reader, a path before those that go on where
it ends. What a strategy needs of all paths through an operator is worked out edge by edge.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise

from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot, Producer


class Ways:
    """Who reads whom in a plan, and how many paths there are."""

    def __init__(self, plan: PlanSnapshot) -> None:
        self.plan = plan
        self.rank = {identity: rank for rank, identity in enumerate(plan.upstream_first)}
        self.producers: dict[int, list[int]] = {identity: [] for identity in plan.by_id}
        for operator in plan.operators:
            for reader in operator.downstream:
                self.producers[reader].append(operator.id)

    @cached_property
    def paths_to(self) -> Mapping[int, int]:
        """How many ways lead to each operator."""
        found: dict[int, int] = {}
        for identity in self.plan.upstream_first:
            streams = len(self.plan.by_id[identity].streams)
            found[identity] = streams + sum(found[each] for each in self.producers[identity])
        return found

    @cached_property
    def paths_from(self) -> Mapping[int, int]:
        """How many ways lead on from each operator to an output."""
        found: dict[int, int] = {}
        for identity in reversed(self.plan.upstream_first):
            operator = self.plan.by_id[identity]
            found[identity] = operator.is_output + sum(found[each] for each in operator.downstream)
        return found

    @cached_property
    def leaves(self) -> tuple[tuple[int, str], ...]:
        """The operators that read streams, once for each of them, in the order of paths."""
        return tuple((each.id, stream) for each in self.plan.operators for stream in each.streams)

    @cached_property
    def places(self) -> Mapping[int, Mapping[int, int]]:
        """The place of each reader among those of an operator."""
        return {
            each.id: {reader: place for place, reader in enumerate(each.downstream)}
            for each in self.plan.operators
        }

    @cached_property
    def _leaf_places(self) -> Mapping[tuple[int, str], int]:
        return {leaf: place for place, leaf in enumerate(self.leaves)}

    def order_of(self, path: OperatorPath) -> tuple[int, ...]:
        """What puts paths in order."""
        first = self._leaf_places[path.operators[0], path.stream]
        return first, *(self.places[each][reader] for each, reader in pairwise(path.operators))

    def is_on_one_path(self, operator: int) -> bool:
        """Whether a single path leads through an operator."""
        return self.paths_to[operator] == 1 and self.paths_from[operator] == 1

    def above(self, operator: int) -> list[int]:
        """An operator and all that tuples may have passed before it, upstream first."""
        found = _reached(operator, self.producers.__getitem__)
        return sorted(found, key=self.rank.__getitem__)

    def below(self, operator: int) -> list[int]:
        """An operator and all that its tuples may come to, those the furthest down first."""
        found = _reached(operator, lambda each: self.plan.by_id[each].downstream)
        return sorted(found, key=self.rank.__getitem__, reverse=True)

    # -- paths -----------------------------------------------------------------------------

    def first_paths(self) -> Iterator[OperatorPath]:
        """The first path through every operator, in the order of paths; each path once."""
        covered: set[int] = set()
        for operator in self._first_producer:
            if operator not in covered:
                path = self.first_path(operator)
                covered.update(path.operators)
                yield path

    def first_path(self, operator: int) -> OperatorPath:
        """The first path through an operator."""
        return self.path_by(operator, self._first_producer, {})

    def path_by(
        self, operator: int, back: Mapping[int, Producer], on: Mapping[int, int | None]
    ) -> OperatorPath:
        """The path that leads to an operator by ``back`` and goes on by ``on`` until that is None.

        Where ``on`` says nothing, it ends as soon as it can.
        """
        operators = [operator]
        while isinstance(producer := back[operators[-1]], int):
            operators.append(producer)
        operators.reverse()
        while (reader := on.get(operators[-1], self._first_end(operators[-1]))) is not None:
            operators.append(reader)
        return OperatorPath(producer, tuple(operators))

    def _first_end(self, operator: int) -> int | None:
        last = self.plan.by_id[operator]
        return None if last.is_output else last.downstream[0]

    @cached_property
    def _first_producer(self) -> Mapping[int, Producer]:
        """What each operator reads on the first path through it, in the order of those paths."""
        found: dict[int, Producer] = {}
        for leaf, stream in self.leaves:
            pending: list[tuple[int, Producer]] = [(leaf, stream)]
            while pending:
                operator, producer = pending.pop()
                if operator not in found:
                    found[operator] = producer
                    readers = reversed(self.plan.by_id[operator].downstream)
                    pending.extend((reader, operator) for reader in readers)
        return found


def _reached(start: int, nexts: Callable[[int], Iterable[int]]) -> set[int]:
    found, pending = {start}, [start]
    while pending:
        new = [each for each in nexts(pending.pop()) if each not in found]
        found.update(new)
        pending.extend(new)
    return found
