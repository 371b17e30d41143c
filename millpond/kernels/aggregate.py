"""Grouped aggregation, exact at every instant of a step."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.errors import InputError
from millpond.kernels.accumulate import accumulate, slot_of, state_fields
from millpond.kernels.columns import flat, integers, with_first
from millpond.kernels.grouped import AggregateSpec, Group
from millpond.kernels.groups import Bools, Ints, distinct, encode, first_rows
from millpond.kernels.kernel import Keyed
from millpond.kernels.ordered import MemberIndex, member_schema, numbered
from millpond.kernels.ranked import Ranked, is_ranked
from millpond.kernels.timeline import Elements, Timeline, marks_at, spans
from millpond.schema import BEGINNING, FOREVER


@dataclass(frozen=True)
class AggregateKernel(Keyed):
    """Keys ``k0…``, arguments ``a0…`` in; columns ``c0…`` (keys, then aggregates) out."""

    aggregates: tuple[AggregateSpec, ...]
    is_append_only: bool
    forgiven: frozenset[int] = frozenset()
    """Values of the last key: what becomes of the sums of these groups is nothing to anybody."""

    @property
    def state_schema(self) -> pa.Schema:
        """One row a group: keys, how many rows it has, and what each aggregate keeps."""
        fields = [*self.key_fields, pa.field("_n", pa.int64())]
        for index, spec in enumerate(self.aggregates):
            fields += state_fields(index, spec, self.is_append_only)
        return pa.schema(fields)

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        types = [*self.key_types, *(spec.type for spec in self.aggregates)]
        return element_schema(types)

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The elements of the step (after, until] and the new state of the groups it touched."""
        return self._computed(events, state, after, until, lambda codes, groups: None)

    def _computed(
        self,
        events: pa.Table,
        state: pa.Table,
        after: int,
        until: int,
        ranked_of: Callable[[Ints, int], Ranked | None],
    ) -> tuple[pa.Table, pa.Table]:
        """The same; ``ranked_of`` is told the groups of the state's rows and how many there are."""
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        is_global = not self.key_types
        groups = 1 if is_global else int(codes.max(initial=-1)) + 1
        elements = Elements(
            np.arange(events.num_rows),
            codes[: events.num_rows],
            integers(events["_ts"]),
            integers(events["_te"]),
            integers(events["_w"]),
        )
        changes = elements.changes(until, marks_at(after, groups, is_global))
        timeline = Timeline.of(changes)
        group = Group(events, elements, timeline, state, codes[events.num_rows :], groups, until)
        ranked = ranked_of(group.state_codes, groups)
        if ranked is not None:
            group.kept["_g"] = pa.array(ranked.number[timeline.code[timeline.is_last]])
        count = group.total("_n", changes.weight)
        values = [
            accumulate(index, spec, group, self.is_append_only, ranked)
            for index, spec in enumerate(self.aggregates)
        ]
        if group.overflown:
            self._refuse(keys, codes, distinct(np.concatenate(group.overflown)), _OVERFLOW)
        if group.raised:
            words = next(iter(group.raised.values()))
            self._refuse(keys, codes, np.array(sorted(group.raised)), words)
        present = (count > 0) | is_global
        present &= ~(timeline.is_first & (after < BEGINNING))
        changed = _changed(timeline, present, [v.differs_from_previous() for v in values])
        examples = first_rows(codes) if not is_global else np.zeros(1, dtype=np.int64)

        def columns(at: Ints) -> list[pa.Array]:
            rows = pa.array(examples[timeline.code[at]])
            return [
                *(flat(keys[name].take(rows)) for name in self.keys),
                *(value.to_arrow(at) for value in values),
            ]

        output = emit(timeline, present.astype(np.int64), changed, columns, self.output_schema)
        return output, self._state(keys, examples, timeline, group)

    def _refuse(self, keys: pa.Table, codes: Ints, failed: Ints, words: str) -> None:
        """Raises an error unless nobody wants to know of the groups that have no value."""
        numbers: set[int] = set()
        if self.key_types and pa.types.is_int64(self.key_types[-1]):
            last = keys[self.keys[-1]].take(pa.array(first_rows(codes)[failed]))
            numbers = set(last.drop_null().to_pylist())
        if not numbers or numbers - self.forgiven:
            raise failure(words, numbers)

    def _state(self, keys: pa.Table, examples: Ints, timeline: Timeline, group: Group) -> pa.Table:
        touched = timeline.code[timeline.is_last]
        rows = pa.array(examples[touched]) if self.keys else None
        columns = [flat(keys[name].take(rows)) for name in self.keys]
        columns += [group.kept[field.name] for field in list(self.state_schema)[len(columns) :]]
        return pa.Table.from_arrays(columns, schema=self.state_schema)


@dataclass(frozen=True)
class RankedAggregateKernel(AggregateKernel):
    """The same with aggregates that keep the values of their groups in order."""

    @property
    def state_schema(self) -> pa.Schema:
        """Each group has a number, under which its values are kept."""
        return super().state_schema.append(pa.field("_g", pa.int64()))

    @property
    def member_schema(self) -> pa.Schema:
        """How often each value is there, or each row with the columns that are read of it."""
        rows = [spec for spec in self.aggregates if spec.keeps_rows]
        types = {
            column: type_
            for spec in rows
            for column, type_ in zip(spec.columns, spec.column_types, strict=True)
        }
        return member_schema([pa.field(f"r{c}", types[c]) for c in sorted(types)])

    @property
    def _arguments(self) -> list[int]:
        found: set[int] = set()
        for index, spec in enumerate(self.aggregates):
            if spec.keeps_rows:
                found.add(slot_of(index))
            elif is_ranked(spec, self.is_append_only) and spec.argument is not None:
                found.add(spec.argument)
        return sorted(found)

    def run_with_members(
        self,
        events: pa.Table,
        state: pa.Table,
        members: MemberIndex,
        after: int,
        until: int,
        fresh: int,
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The elements of the step, the new state of the groups, and the values that move."""
        found: list[Ranked] = []

        def ranked_of(codes: Ints, groups: int) -> Ranked:
            _, number = numbered(state, codes, groups, fresh)
            found.append(Ranked(members, number, self._arguments))
            return found[0]

        output, changed = self._computed(events, state, after, until, ranked_of)
        return output, changed, found[0].changes()


def aggregate_kernel(
    key_types: tuple[pa.DataType, ...], aggregates: tuple[AggregateSpec, ...], is_append_only: bool
) -> AggregateKernel:
    """The kernel for some aggregates."""
    ranked = any(is_ranked(spec, is_append_only) for spec in aggregates)
    kind = RankedAggregateKernel if ranked else AggregateKernel
    return kind(key_types, aggregates, is_append_only)


LAST_KEYS = "last keys: "
"""Behind this a note on an error says in which groups it was."""


_OVERFLOW = "sum leaves the range of BIGINT, or of its DECIMAL; CAST the argument to DOUBLE"


def overflow(last_keys: Iterable[int]) -> InputError:
    """What is said of sums that leave their range, with the last keys of their groups."""
    return failure(_OVERFLOW, last_keys)


def failure(words: str, last_keys: Iterable[int]) -> InputError:
    """What is said of groups that have no value, with their last keys."""
    error = InputError(words)
    error.add_note(LAST_KEYS + " ".join(map(str, sorted(last_keys))))
    return error


def last_keys_in(error: BaseException | None) -> frozenset[int]:
    """The last keys of the groups in which an error was, if it says so."""
    notes = (str(note) for note in getattr(error, "__notes__", ()))
    found = (note.removeprefix(LAST_KEYS) for note in notes if note.startswith(LAST_KEYS))
    return frozenset(int(each) for keys in found for each in keys.split())


def element_schema(types: Sequence[pa.DataType]) -> pa.Schema:
    """The schema of relation elements with data columns ``c0…``."""
    times = [pa.field(name, pa.int64()) for name in ("_ts", "_te", "_w")]
    return pa.schema(times + [pa.field(f"c{i}", t) for i, t in enumerate(types)])


def _changed(timeline: Timeline, present: Bools, differs: list[Bools]) -> Bools:
    """The instants at which a group's row appears, disappears or changes."""
    if len(present) == 0:
        return present
    before = with_first(False, present[:-1])
    changed = present != before
    for each in differs:
        changed = changed | (each & present & before)
    result: Bools = changed & ~timeline.is_first
    return result


def emit(
    timeline: Timeline,
    weight: Ints,
    changed: Bools,
    columns: Callable[[Ints], list[pa.Array]],
    schema: pa.Schema,
) -> pa.Table:
    """Elements for a value that holds with a weight from each changed instant to the next.

    What was open when the step began is closed by a minus at its first change.
    """
    at, end = spans(timeline, changed)
    starts = timeline.time[at]
    begins = np.maximum.accumulate(np.where(timeline.is_first, np.arange(len(weight)), 0))
    first_change = with_first(True, timeline.code[at][1:] != timeline.code[at][:-1])[: len(at)]
    opened = begins[at]
    closing = first_change & (weight[opened] != 0)
    lasting = weight[at] != 0
    source = np.concatenate([opened[closing], at[lasting]])
    arrays = [
        pa.array(np.concatenate([starts[closing], starts[lasting]])),
        pa.array(np.concatenate([np.full(int(closing.sum()), FOREVER), end[lasting]])),
        pa.array(np.concatenate([-weight[opened[closing]], weight[at[lasting]]])),
        *columns(source),
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
