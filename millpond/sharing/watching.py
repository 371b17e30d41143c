"""Which columns of streams are watched: those by which rows of running queries could be freed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from millpond.catalog import MOST_ROWS, ORDERED_TYPES, Constraint, StreamEntry
from millpond.cql.statements import Action, AlterStream
from millpond.errors import StateError
from millpond.identities import InputId, OperatorId, StreamId
from millpond.intake.samples import SHARE
from millpond.intake.watching import ENOUGH_ROWS, ENOUGH_TIMES, Watch
from millpond.planning.bounded import Freeing, Known, freeings
from millpond.planning.graph import Graph
from millpond.sharing.ground import Ground

StreamColumn: TypeAlias = tuple[StreamId, int]
KINDS = ("ordered", "clustered", "unique", "references")


@dataclass(frozen=True)
class Suggestion:
    """A constraint of a stream that was seen, and of which operators it would free rows."""

    stream: StreamId
    constraint: Constraint
    operators: tuple[OperatorId, ...]


class Watching:
    """Has streams be watched as queries come and go, and knows what would free rows of them."""

    def __init__(self, ground: Ground, graph: Graph) -> None:
        self._ground, self._graph = ground, graph
        self._freeings: dict[OperatorId, list[Freeing]] = {}
        """What could be freed of each operator, if streams were ordered."""
        self._readers: dict[StreamColumn, int] = {}

    def added(self, identities: Iterable[OperatorId]) -> None:
        """Operators have come."""
        known, supposed = set(self._readers), self._supposed
        for identity in identities:
            could_be = freeings(self._graph, identity, supposed)
            found = [each for each in could_be if isinstance(each, Freeing)]
            if found:
                self._freeings[identity] = found
                for each in _columns(found):
                    self._readers[each] = self._readers.get(each, 0) + 1
        if self._readers.keys() != known:
            self.watch()

    def removed(self, identities: Iterable[OperatorId]) -> None:
        """Operators are gone."""
        known = set(self._readers)
        for identity in identities:
            for each in _columns(self._freeings.pop(identity, [])):
                self._readers[each] -= 1
                if not self._readers[each]:
                    del self._readers[each]
        if self._readers.keys() != known:
            self.watch()

    @property
    def _supposed(self) -> Known:
        """All constraints that could be said of the order of streams, with those that say what
        references what."""
        return {
            entry.identity: [
                *(each for each in entry.constraints if each.kind == "references"),
                *(
                    Constraint("", column, 0, is_of_rows=True)
                    for column, each in enumerate(entry.schema.fields)
                    if each.type in ORDERED_TYPES
                ),
            ]
            for entry in self._ground.catalog.of_kind(StreamEntry)
        }

    def watch(self) -> None:
        """Has those columns be watched, if any are to be."""
        found: dict[InputId, set[int]] = {}
        watch = self._ground.settings.watch
        for stream, column in () if watch == "off" else self._readers:
            found.setdefault(stream, set()).add(column)
        self._ground.inputs.follows_values = watch == "on"
        self._ground.inputs.watch({key: frozenset(each) for key, each in found.items()})

    def suggested(self) -> list[Suggestion]:
        """The constraints that nobody has said, were seen, and would free rows of operators, if
        all of a kind that were seen were said."""
        found: dict[tuple[StreamId, Constraint], list[OperatorId]] = {}
        ordered: set[StreamColumn] = set()
        for kind in KINDS:
            seen = self._candidates(kind)
            for identity in self._freeings:
                if identity in self._graph.operators:
                    for each in self._freed_by(seen, identity):
                        found.setdefault(each, []).append(identity)
            if kind == "ordered":
                ordered = {(stream, each.column) for stream, each in found}
        return [
            Suggestion(stream, each, tuple(operators))
            for (stream, each), operators in found.items()
            if each.kind != "clustered" or (stream, each.column) not in ordered
        ]

    def _freed_by(
        self, seen: Sequence[tuple[StreamId, Constraint]], identity: OperatorId
    ) -> list[tuple[StreamId, Constraint]]:
        """Those of some constraints by which more rows of an operator would be freed."""
        declared = self._declared()
        supposed: dict[StreamId, list[Constraint]] = {k: list(v) for k, v in declared.items()}
        for stream, each in seen:
            supposed.setdefault(stream, []).append(each)
        now = set(freeings(self._graph, identity, declared))
        new = [each for each in freeings(self._graph, identity, supposed) if each not in now]
        return [each for each in seen if any(freed.relies_on(*each) for freed in new)]

    def _declared(self) -> Known:
        entries: Iterable[StreamEntry] = self._ground.catalog.of_kind(StreamEntry)
        return {entry.identity: entry.constraints for entry in entries if entry.constraints}

    def _candidates(self, kind: str) -> list[tuple[StreamId, Constraint]]:
        """The constraints of a kind that were seen, each within the smallest k, and are not
        declared; their names stand for what they say."""
        declared = self._declared()
        found = []
        for stream, column in self._readers:
            others = [each for each in self._readers if each[0] != stream]
            for target in others if kind == "references" else [None]:
                candidate = _supposed(kind, column, target)
                said = (_promise(each) for each in declared.get(stream, ()))
                k = self.within(stream, candidate)
                if k is not None and _promise(candidate) not in said:
                    found.append((stream, replace(candidate, within=k)))
        return found

    def within(self, stream: StreamId, constraint: Constraint) -> int | None:
        """The smallest k seen of what a constraint promises, in rows; None if it is not known."""
        watch = self.seen_of((stream, constraint.column))
        if watch is None or constraint.more_columns:
            return None
        match constraint.kind:
            case "ordered":
                return watch.within
            case "clustered":
                return watch.clustered
            case "unique":
                return watch.unique
        target = StreamId(constraint.target), constraint.target_columns[0]
        other = self.seen_of(target)
        return None if other is None else watch.references(other, stream)

    def measured(self, action: Action) -> int | None:
        """The k of a constraint that is added AS MEASURED; refused if nothing is known."""
        match action:
            case AlterStream(adds=Constraint() as added, is_measured=True):
                stream = StreamId(action.name)
                within = self.within(stream, added)
                if within is None:
                    watch = self.seen_of((stream, added.column))
                    raise StateError(_unknown(action.name, added, watch))
                return within
        return None

    def seen_of(self, column: StreamColumn) -> Watch | None:
        """What was seen of a column, if it is watched."""
        intake = self._ground.inputs.streams.get(column[0])
        return None if intake is None else intake.watches.of(column[1])


def _supposed(kind: str, column: int, target: StreamColumn | None) -> Constraint:
    """A constraint that might be said."""
    name = f"?{kind} {column} {target}"
    if target is None:
        return Constraint(name, column, 0, is_of_rows=True, kind=kind)
    stream, position = target
    return Constraint(name, column, 0, True, "stop", kind, (), stream, (position,))


def _promise(constraint: Constraint) -> tuple[Any, ...]:
    """What a constraint promises, but for k."""
    target = StreamId(constraint.target) if constraint.target else ""
    return constraint.kind, constraint.columns, target, constraint.target_columns


def _unknown(stream: str, added: Constraint, watch: Watch | None) -> str:
    """Why it is not known how far tuples come behind larger ones."""
    if watch is None:
        why = (
            "the column is not watched: no running query joins or groups by it so that rows could "
            "be freed, or SET watch = 'off' was said"
        )
    elif added.kind != "ordered":
        why = (
            f"of {watch.rows:,} tuples one value in {SHARE} was followed, if SET watch = 'on' was "
            "said, which is too little, of too few values or too far apart"
        )
    elif watch.is_given_up:
        why = f"tuples come more than {MOST_ROWS:,} rows behind larger ones"
    else:
        why = (
            f"{watch.rows:,} tuples were seen, at most {watch.ordering.measured:,} rows behind, "
            f"and it takes {ENOUGH_ROWS} of them and {ENOUGH_TIMES} times as many as that"
        )
    return f"{added.name} of stream {stream} was not measured: {why}; write WITHIN k ROWS"


def _columns(freed: Iterable[Freeing]) -> set[StreamColumn]:
    return {(source.stream, source.column) for each in freed for source in each.sources}
